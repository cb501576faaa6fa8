// Tests ownership-check.ts with constructed logs, with and without violations.
import { describe, expect, it } from "vitest";
import type { PodWrite } from "../support/mesh/pod-writes.ts";
import { microTimeMs, podWritesOf } from "../support/mesh/pod-writes.ts";
import { checkOwnership, type OwnerChange, violationText } from "./ownership-check.ts";

const SUBSETS: Readonly<Record<string, string>> = { "foo-0": "", "foo-1": "", "canary-0": "v2", "canary-1": "v2" };

/** A write of a pod from one time to another. */
function write(pod: string, receivedMs: number, answeredMs: number, more: Partial<PodWrite> = {}): PodWrite {
  return { pod, receivedMs, answeredMs, verb: "update", resource: "foos/status", namespace: "a", name: "x", code: 200, ...more };
}

const change = (sinceMs: number, subset: string): OwnerChange => ({ sinceMs, subset });

function violationsOf(writes: readonly PodWrite[], changes: readonly OwnerChange[]) {
  const result = checkOwnership({ writes, subsetOf: (pod) => SUBSETS[pod], ownersOf: () => changes });
  return result.violations.map((violation) =>
    violation.kind === "overlap"
      ? [violation.kind, violation.first.pod, violation.second.pod]
      : [violation.kind, violation.write.pod],
  );
}

describe("checkOwnership", () => {
  it("finds nothing when one subset writes, also from several pods at once", () => {
    expect(violationsOf([write("foo-0", 0, 10), write("foo-1", 5, 20), write("foo-0", 15, 16)], [change(0, "")])).toEqual([]);
  });
  it("accepts a handover that the rules explain", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("canary-1", 80, 90)];
    const result = checkOwnership({ writes, subsetOf: (pod) => SUBSETS[pod], ownersOf: () => [change(0, ""), change(50, "v2")] });
    expect(result).toEqual({ violations: [], checked: 3, places: 1, handovers: 1 });
  });
  it("accepts writes of the old owner for a while after a change of the rules", () => {
    expect(violationsOf([write("foo-0", 55, 59), write("canary-0", 60, 70)], [change(0, ""), change(50, "v2")])).toEqual([]);
  });
  it("accepts a move to another subset and back, also if the other subset wrote nothing", () => {
    const changes = [change(0, ""), change(50, "v2"), change(100, ""), change(150, "v2")];
    expect(violationsOf([write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-0", 110, 120)], changes)).toEqual([]);
    expect(violationsOf([write("foo-0", 0, 10), write("canary-0", 160, 170)], changes)).toEqual([]);
  });

  it("finds a subset that writes again after another one without a change of the rules", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-1", 80, 90)];
    expect(violationsOf(writes, [change(0, ""), change(50, "v2")])).toEqual([["not-owner", "foo-1"]]);
  });
  it("finds a subset that writes again before the rules change back", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-1", 80, 90)];
    expect(violationsOf(writes, [change(0, ""), change(50, "v2"), change(85, "")])).toEqual([["not-owner", "foo-1"]]);
  });
  it("finds a new owner that writes before the rules change", () => {
    expect(violationsOf([write("foo-0", 0, 10), write("canary-0", 40, 45)], [change(0, ""), change(50, "v2")])).toEqual([
      ["not-owner", "canary-0"],
    ]);
  });
  it("finds a subset that writes although it was never the owner", () => {
    expect(violationsOf([write("canary-0", 40, 45)], [change(0, "")])).toEqual([["not-owner", "canary-0"]]);
  });
  it("finds an overlap with the next owner, also after a change of the rules", () => {
    const writes = [write("foo-0", 40, 65), write("canary-0", 60, 70)];
    expect(violationsOf(writes, [change(0, ""), change(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("finds an overlap with a long write that other writes follow", () => {
    const writes = [write("foo-0", 0, 65), write("foo-1", 20, 30), write("canary-0", 60, 62)];
    expect(violationsOf(writes, [change(0, ""), change(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("finds an overlap by the times, not by the order of the log, which is the order of the answers", () => {
    const writes = [write("canary-0", 60, 62), write("foo-0", 0, 65), write("canary-1", 66, 67)];
    expect(violationsOf(writes, [change(0, ""), change(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("counts a write that the API server refused, since a proxy forwarded it", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70, { code: 409 })];
    expect(violationsOf(writes, [change(0, "")])).toEqual([["not-owner", "canary-0"]]);
  });
  it("checks each namespace separately, and a subresource with its resource", () => {
    const elsewhere = [write("foo-0", 0, 10), write("canary-0", 5, 15, { namespace: "b" })];
    const { violations } = checkOwnership({
      writes: elsewhere,
      subsetOf: (pod) => SUBSETS[pod],
      ownersOf: (place) => [change(0, place.endsWith("b") ? "v2" : "")],
    });
    expect(violations).toEqual([]);
    expect(
      violationsOf([write("foo-0", 0, 10), write("canary-0", 5, 15, { resource: "foos" })], [change(0, ""), change(1, "v2")]),
    ).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("ignores pods of other apps", () => {
    expect(violationsOf([write("foo-0", 0, 10), write("stranger", 5, 15)], [change(0, "")])).toEqual([]);
  });
  it("uses the subset that a pod had at the time", () => {
    const { violations } = checkOwnership({
      writes: [write("foo-0", 0, 10), write("foo-0", 60, 70)],
      subsetOf: (_, atMs) => (atMs < 50 ? "" : "v2"),
      ownersOf: () => [change(0, "")],
    });
    expect(violations).toMatchObject([{ kind: "not-owner", write: { subset: "v2" } }]);
  });
  it("reports the pods, the writes and the times", () => {
    const { violations } = checkOwnership({
      writes: [write("foo-0", 40, 65.25), write("canary-0", 60, 70)],
      subsetOf: (pod) => SUBSETS[pod],
      ownersOf: () => [change(0, ""), change(50, "v2")],
    });
    expect(violations.map(violationText)).toEqual([
      "foos in a: canary-0 of v2 (update foos/status a/x: 200, 00:00:00.060000 to 00:00:00.070000) while foo-0 of the default subset (update foos/status a/x: 200, 00:00:00.040000 to 00:00:00.065250) was under way, by 5.250 ms",
    ]);
  });
});

describe("podWritesOf", () => {
  const event = {
    auditID: "1",
    stage: "ResponseComplete",
    verb: "update",
    user: { username: "u", extra: { "authentication.kubernetes.io/pod-name": ["foo-0"] } },
    objectRef: { resource: "foos", namespace: "a", name: "x", subresource: "status" },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: "2026-01-02T03:04:05.123456Z",
    stageTimestamp: "2026-01-02T03:04:05.200000Z",
  };
  it("reads the pod from its token and keeps the microseconds", () => {
    expect(podWritesOf([event])).toMatchObject([{ pod: "foo-0", resource: "foos/status" }]);
    expect(microTimeMs("2026-01-02T03:04:05.123456Z") % 1000).toBeCloseTo(123.456, 3);
    expect(microTimeMs("2026-01-02T03:04:05Z")).toBe(Date.parse("2026-01-02T03:04:05Z"));
  });
  it("leaves out reviews, and writes of callers that are not pods", () => {
    expect(podWritesOf([{ ...event, user: { username: "admin" } }])).toEqual([]);
    expect(
      podWritesOf([{ ...event, objectRef: { resource: "selfsubjectaccessreviews", apiGroup: "authorization.k8s.io" } }]),
    ).toEqual([]);
  });
});

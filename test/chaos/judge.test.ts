// The judge is tried with made-up logs: those that must be found guilty, and those that must not.
import { describe, expect, it } from "vitest";
import type { PodWrite } from "../support/mesh/pod-writes.ts";
import { microTimeMs, podWritesOf } from "../support/mesh/pod-writes.ts";
import { faultText, judge, type Wish } from "./judge.ts";

const SUBSETS: Readonly<Record<string, string>> = { "foo-0": "", "foo-1": "", "canary-0": "v2", "canary-1": "v2" };

/** A write of a pod from one time to another. */
function write(pod: string, receivedMs: number, answeredMs: number, more: Partial<PodWrite> = {}): PodWrite {
  return { pod, receivedMs, answeredMs, verb: "update", resource: "foos/status", namespace: "a", name: "x", code: 200, ...more };
}

const wish = (sinceMs: number, subset: string): Wish => ({ sinceMs, subset });

function faultsOf(writes: readonly PodWrite[], wishes: readonly Wish[]) {
  const verdict = judge({ writes, subsetOf: (pod) => SUBSETS[pod], wishesOf: () => wishes });
  return verdict.faults.map((fault) =>
    fault.kind === "overlap" ? [fault.kind, fault.first.pod, fault.second.pod] : [fault.kind, fault.write.pod],
  );
}

describe("judge", () => {
  it("finds nothing where one subset writes, from several pods at once too", () => {
    expect(faultsOf([write("foo-0", 0, 10), write("foo-1", 5, 20), write("foo-0", 15, 16)], [wish(0, "")])).toEqual([]);
  });
  it("accepts a handover that the rules explain", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("canary-1", 80, 90)];
    const verdict = judge({ writes, subsetOf: (pod) => SUBSETS[pod], wishesOf: () => [wish(0, ""), wish(50, "v2")] });
    expect(verdict).toEqual({ faults: [], judged: 3, places: 1, handovers: 1 });
  });
  it("accepts that the old owner goes on for a while after the rules have changed", () => {
    expect(faultsOf([write("foo-0", 55, 59), write("canary-0", 60, 70)], [wish(0, ""), wish(50, "v2")])).toEqual([]);
  });
  it("accepts there and back again, also where an owner between had nothing to write", () => {
    const wishes = [wish(0, ""), wish(50, "v2"), wish(100, ""), wish(150, "v2")];
    expect(faultsOf([write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-0", 110, 120)], wishes)).toEqual([]);
    expect(faultsOf([write("foo-0", 0, 10), write("canary-0", 160, 170)], wishes)).toEqual([]);
  });

  it("finds a subset that writes again after another one, with no change of the rules between", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-1", 80, 90)];
    expect(faultsOf(writes, [wish(0, ""), wish(50, "v2")])).toEqual([["not-owner", "foo-1"]]);
  });
  it("finds it where the rules change back only later", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70), write("foo-1", 80, 90)];
    expect(faultsOf(writes, [wish(0, ""), wish(50, "v2"), wish(85, "")])).toEqual([["not-owner", "foo-1"]]);
  });
  it("finds a new owner that writes before the rules gave it anything", () => {
    expect(faultsOf([write("foo-0", 0, 10), write("canary-0", 40, 45)], [wish(0, ""), wish(50, "v2")])).toEqual([
      ["not-owner", "canary-0"],
    ]);
  });
  it("finds a writer that never was an owner", () => {
    expect(faultsOf([write("canary-0", 40, 45)], [wish(0, "")])).toEqual([["not-owner", "canary-0"]]);
  });
  it("finds a write that the next owner did not wait for, though its turn was in order", () => {
    const writes = [write("foo-0", 40, 65), write("canary-0", 60, 70)];
    expect(faultsOf(writes, [wish(0, ""), wish(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("finds it too where other writes came between, and where the long one began first of all", () => {
    const writes = [write("foo-0", 0, 65), write("foo-1", 20, 30), write("canary-0", 60, 62)];
    expect(faultsOf(writes, [wish(0, ""), wish(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("finds it by the times and not by the order of the log, which is that of the answers", () => {
    const writes = [write("canary-0", 60, 62), write("foo-0", 0, 65), write("canary-1", 66, 67)];
    expect(faultsOf(writes, [wish(0, ""), wish(50, "v2")])).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("counts a write that the API server refused: a proxy has let it through", () => {
    const writes = [write("foo-0", 0, 10), write("canary-0", 60, 70, { code: 409 })];
    expect(faultsOf(writes, [wish(0, "")])).toEqual([["not-owner", "canary-0"]]);
  });
  it("judges places apart: a subresource with its resource, a namespace for itself", () => {
    const elsewhere = [write("foo-0", 0, 10), write("canary-0", 5, 15, { namespace: "b" })];
    const { faults } = judge({
      writes: elsewhere,
      subsetOf: (pod) => SUBSETS[pod],
      wishesOf: (place) => [wish(0, place.endsWith("b") ? "v2" : "")],
    });
    expect(faults).toEqual([]);
    expect(
      faultsOf([write("foo-0", 0, 10), write("canary-0", 5, 15, { resource: "foos" })], [wish(0, ""), wish(1, "v2")]),
    ).toEqual([["overlap", "foo-0", "canary-0"]]);
  });
  it("knows nothing of pods of other apps", () => {
    expect(faultsOf([write("foo-0", 0, 10), write("stranger", 5, 15)], [wish(0, "")])).toEqual([]);
  });
  it("goes by the subset that a pod was in at the time", () => {
    const { faults } = judge({
      writes: [write("foo-0", 0, 10), write("foo-0", 60, 70)],
      subsetOf: (_, atMs) => (atMs < 50 ? "" : "v2"),
      wishesOf: () => [wish(0, "")],
    });
    expect(faults).toMatchObject([{ kind: "not-owner", write: { subset: "v2" } }]);
  });
  it("says who did what, and when", () => {
    const { faults } = judge({
      writes: [write("foo-0", 40, 65.25), write("canary-0", 60, 70)],
      subsetOf: (pod) => SUBSETS[pod],
      wishesOf: () => [wish(0, ""), wish(50, "v2")],
    });
    expect(faults.map(faultText)).toEqual([
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
  it("names the pod by its token and keeps the microseconds", () => {
    expect(podWritesOf([event])).toMatchObject([{ pod: "foo-0", resource: "foos/status" }]);
    expect(microTimeMs("2026-01-02T03:04:05.123456Z") % 1000).toBeCloseTo(123.456, 3);
    expect(microTimeMs("2026-01-02T03:04:05Z")).toBe(Date.parse("2026-01-02T03:04:05Z"));
  });
  it("leaves out what no pod wrote, and reviews", () => {
    expect(podWritesOf([{ ...event, user: { username: "admin" } }])).toEqual([]);
    expect(
      podWritesOf([{ ...event, objectRef: { resource: "selfsubjectaccessreviews", apiGroup: "authorization.k8s.io" } }]),
    ).toEqual([]);
  });
});

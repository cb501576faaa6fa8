// Tests informers.ts with constructed logs of informers' requests.
import { describe, expect, it } from "vitest";
import type { AuditEvent } from "../support/kube.ts";
import { type ApiRead, type LateSubset, longestSleepMs, readsOf, whyLate } from "./informers.ts";

const ALWAYS = Number.POSITIVE_INFINITY;

function read(kind: string, sentMs: number, endedMs = ALWAYS, pod = "foo-0"): ApiRead {
  return { pod, kind, sentMs, endedMs };
}

/** The reason for late work of `foo-0`, which leads from the start, at 60 s; ownership converged at 20 s. */
function reason(reads: readonly ApiRead[], more: Partial<LateSubset> = {}) {
  return whyLate({ leader: { pod: "foo-0", sinceMs: 0 }, reads, ownedMs: 20_000, refused: 0, nowMs: 60_000, ...more });
}

describe("whyLate", () => {
  it("excuses an informer of either kind whose watch ended and that has sent no request since ownership converged", () => {
    expect(reason([read("foos", 1_000, 19_000), read("configmaps", 21_000)])).toBeUndefined();
    expect(reason([read("foos", 21_000), read("configmaps", 1_000, 19_000)])).toBeUndefined();
    expect(reason([read("foos", 1_000, 22_000), read("configmaps", 21_000)])).toBeUndefined();
  });
  it("allows an informer ten seconds after its request", () => {
    const reads = [read("foos", 1_000, 19_000), read("foos", 50_000), read("configmaps", 21_000)];
    expect(reason(reads)).toBeUndefined();
    expect(reason(reads, { nowMs: 60_001 })).toBe(
      "foo-0 has led the owner since 00:00:00.000; it requested foos last at 00:00:50.000, watching " +
        "and configmaps last at 00:00:21.000, watching; ownership converged at 00:00:20.000, now it is 00:01:00.001",
    );
  });
  it("does not excuse an informer with a watch that was opened before ownership converged", () => {
    expect(reason([read("foos", 1_000), read("configmaps", 1_000)])).toMatch(/^foo-0 has led/);
  });
  it("does not excuse an informer whose new watch has ended", () => {
    expect(reason([read("foos", 21_000, 22_000), read("configmaps", 21_000)])).toMatch(/ended at 00:00:22/);
  });
  it("ignores requests of other pods, and those of the pod before it led", () => {
    const leader = { pod: "foo-0", sinceMs: 15_000 };
    const reads = [read("foos", 1_000, 14_000), read("foos", 59_000, ALWAYS, "foo-1"), read("configmaps", 16_000)];
    expect(reason(reads, { leader })).toMatch(/requested foos never/);
  });
  it("allows a new leader ten seconds", () => {
    const leader = { pod: "foo-0", sinceMs: 50_000 };
    expect(reason([], { leader })).toBeUndefined();
    expect(reason([], { leader, nowMs: 60_001 })).toMatch(/never/);
  });
  it("does not excuse a proxy that refuses an informer twice, which is not in the audit log", () => {
    const reads = [read("foos", 1_000, 19_000), read("configmaps", 1_000, 19_000)];
    expect(reason(reads, { refused: 2 })).toBeUndefined();
    expect(reason(reads, { refused: 3 })).toBe(
      "the proxy of foo-0, the owner's leader, has refused 3 watches since 00:00:20.000",
    );
  });
  it("does not excuse a subset without a leader", () => {
    expect(reason([], { leader: undefined })).toBe("the owner has no leader");
  });
});

describe("longestSleepMs", () => {
  const leaders = [{ pod: "foo-0", sinceMs: 0 }];
  it("is the longest time for which one informer sent no request", () => {
    const reads = [read("foos", 1_000, 5_000), read("configmaps", 1_000, 6_000), read("configmaps", 8_000), read("foos", 9_000)];
    expect(longestSleepMs(reads, leaders, 2_000, 20_000)).toBe(4_000);
  });
  it("includes the start and the end of the interval, and is zero while watches are open", () => {
    const reads = [read("foos", 1_000, 5_000), read("configmaps", 1_000)];
    expect(longestSleepMs(reads, leaders, 6_000, 20_000)).toBe(14_000);
    expect(longestSleepMs([read("foos", 1_000), read("configmaps", 1_000)], leaders, 6_000, 20_000)).toBe(0);
  });
});

describe("askingsOf", () => {
  const event = (auditID: string, stage: string, at: string, verb = "watch", received = at): AuditEvent => ({
    auditID,
    stage,
    verb,
    user: { username: "u", extra: { "authentication.kubernetes.io/pod-name": ["foo-0"] } },
    objectRef: { resource: "foos" },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: `1970-01-01T00:00:${received}.000000Z`,
    stageTimestamp: `1970-01-01T00:00:${at}.000000Z`,
  });
  const begun = event("1", "ResponseStarted", "02");
  const over = event("1", "ResponseComplete", "09", "watch", "02");

  it("merges the lines of one watch", () => {
    expect(readsOf([begun], 0)).toEqual([read("foos", 2_000)]);
    expect(readsOf([begun, over], 0)).toEqual([read("foos", 2_000, 9_000)]);
  });
  it("takes the response as the end of a list", () => {
    expect(readsOf([event("1", "ResponseComplete", "03", "list", "02")], 0)).toEqual([read("foos", 2_000, 3_000)]);
  });
  it("ends all requests when the API server is killed", () => {
    expect(readsOf([begun], 5_000)).toEqual([read("foos", 2_000, 5_000)]);
  });
  it("leaves out requests of callers that are not pods", () => {
    expect(readsOf([{ ...begun, user: { username: "admin" } }], 0)).toEqual([]);
  });
});

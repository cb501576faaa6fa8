// Made-up logs of what informers asked, and what that excuses.
import { describe, expect, it } from "vitest";
import type { AuditEvent } from "../support/kube.ts";
import { type Asking, askingsOf, type Circumstance, longestSleepMs, whyLate } from "./informers.ts";

const ALWAYS = Number.POSITIVE_INFINITY;

function asking(kind: string, askedMs: number, endedMs = ALWAYS, pod = "foo-0"): Asking {
  return { pod, kind, askedMs, endedMs };
}

/** What `foo-0`, who leads from the beginning, is told at 60 s, where ownership was done at 20 s. */
function reason(askings: readonly Asking[], more: Partial<Circumstance> = {}) {
  return whyLate({ leader: { pod: "foo-0", sinceMs: 0 }, askings, ownedMs: 20_000, refused: 0, nowMs: 60_000, ...more });
}

describe("whyLate", () => {
  it("excuses an informer that is over and has not asked since ownership was done, of either kind", () => {
    expect(reason([asking("foos", 1_000, 19_000), asking("configmaps", 21_000)])).toBeUndefined();
    expect(reason([asking("foos", 21_000), asking("configmaps", 1_000, 19_000)])).toBeUndefined();
    expect(reason([asking("foos", 1_000, 22_000), asking("configmaps", 21_000)])).toBeUndefined();
  });
  it("gives ten seconds to one that has asked", () => {
    const askings = [asking("foos", 1_000, 19_000), asking("foos", 50_000), asking("configmaps", 21_000)];
    expect(reason(askings)).toBeUndefined();
    expect(reason(askings, { nowMs: 60_001 })).toBe(
      "foo-0 leads its owner since 00:00:00.000, and asked for foos last at 00:00:50.000, and watches " +
        "and for configmaps last at 00:00:21.000, and watches; ownership was done at 00:00:20.000, now it is 00:01:00.001",
    );
  });
  it("does not excuse one that watches, though it asked before: nobody told it to list again", () => {
    expect(reason([asking("foos", 1_000), asking("configmaps", 1_000)])).toMatch(/^foo-0 leads/);
  });
  it("does not excuse one that has asked since and was ended once more", () => {
    expect(reason([asking("foos", 21_000, 22_000), asking("configmaps", 21_000)])).toMatch(/over at 00:00:22/);
  });
  it("does not go by what others ask, nor by what the pod asked before it led", () => {
    const leader = { pod: "foo-0", sinceMs: 15_000 };
    const askings = [asking("foos", 1_000, 14_000), asking("foos", 59_000, ALWAYS, "foo-1"), asking("configmaps", 16_000)];
    expect(reason(askings, { leader })).toMatch(/asked for foos never/);
  });
  it("gives a leader who has only just come as long as one that has only just asked", () => {
    const leader = { pod: "foo-0", sinceMs: 50_000 };
    expect(reason([], { leader })).toBeUndefined();
    expect(reason([], { leader, nowMs: 60_001 })).toMatch(/never/);
  });
  it("excuses no proxy that refuses an informer twice, of which the audit log says nothing", () => {
    const askings = [asking("foos", 1_000, 19_000), asking("configmaps", 1_000, 19_000)];
    expect(reason(askings, { refused: 2 })).toBeUndefined();
    expect(reason(askings, { refused: 3 })).toBe(
      "the proxy of foo-0, its owner's leader, has refused 3 watches since 00:00:20.000",
    );
  });
  it("does not excuse a subset that nobody leads", () => {
    expect(reason([], { leader: undefined })).toBe("nobody leads its owner");
  });
});

describe("longestSleepMs", () => {
  const leaders = [{ pod: "foo-0", sinceMs: 0 }];
  it("is the longest time without a question of one informer", () => {
    const askings = [
      asking("foos", 1_000, 5_000),
      asking("configmaps", 1_000, 6_000),
      asking("configmaps", 8_000),
      asking("foos", 9_000),
    ];
    expect(longestSleepMs(askings, leaders, 2_000, 20_000)).toBe(4_000);
  });
  it("counts from the beginning and to the end of the time that is looked at, and none for those that watch", () => {
    const askings = [asking("foos", 1_000, 5_000), asking("configmaps", 1_000)];
    expect(longestSleepMs(askings, leaders, 6_000, 20_000)).toBe(14_000);
    expect(longestSleepMs([asking("foos", 1_000), asking("configmaps", 1_000)], leaders, 6_000, 20_000)).toBe(0);
  });
});

describe("askingsOf", () => {
  const event = (auditID: string, stage: string, at: string, verb = "watch", received = at): AuditEvent => ({
    ...{ auditID, stage, verb },
    user: { username: "u", extra: { "authentication.kubernetes.io/pod-name": ["foo-0"] } },
    objectRef: { resource: "foos" },
    responseStatus: { code: 200 },
    requestReceivedTimestamp: `1970-01-01T00:00:${received}.000000Z`,
    stageTimestamp: `1970-01-01T00:00:${at}.000000Z`,
  });
  const begun = event("1", "ResponseStarted", "02");
  const over = event("1", "ResponseComplete", "09", "watch", "02");

  it("takes the lines of one watch together", () => {
    expect(askingsOf([begun], 0)).toEqual([asking("foos", 2_000)]);
    expect(askingsOf([begun, over], 0)).toEqual([asking("foos", 2_000, 9_000)]);
  });
  it("takes a list as what is over once it is answered", () => {
    expect(askingsOf([event("1", "ResponseComplete", "03", "list", "02")], 0)).toEqual([asking("foos", 2_000, 3_000)]);
  });
  it("knows that an API server that was killed ended all", () => {
    expect(askingsOf([begun], 5_000)).toEqual([asking("foos", 2_000, 5_000)]);
  });
  it("leaves out what no pod asked", () => {
    expect(askingsOf([{ ...begun, user: { username: "admin" } }], 0)).toEqual([]);
  });
});

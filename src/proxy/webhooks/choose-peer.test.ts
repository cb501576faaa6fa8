import { describe, expect, it } from "vitest";
import { budgetMs, choosePeer, isRetried, type Peer } from "./choose-peer.ts";

const peer = (address: string, more: Partial<Peer> = {}): Peer => ({
  address,
  subset: "canary",
  isReady: true,
  capacity: 10,
  inFlight: 0,
  ...more,
});

describe("choosePeer", () => {
  it.each<[string, Peer[], string | undefined]>([
    ["takes the peer with the least in flight", [peer("a", { inFlight: 2 }), peer("b", { inFlight: 1 })], "b"],
    ["takes the first of equals", [peer("b"), peer("a")], "b"],
    ["skips other subsets", [peer("a", { subset: "" }), peer("b", { inFlight: 5 })], "b"],
    ["skips peers that are not ready", [peer("a", { isReady: false }), peer("b", { inFlight: 5 })], "b"],
    ["skips full peers", [peer("a", { inFlight: 1, capacity: 1 }), peer("b", { inFlight: 5 })], "b"],
  ])("%s", (_, peers, address) => {
    expect(choosePeer(peers, "canary")).toMatchObject({ kind: "peer", peer: { address } });
  });

  it("says why there is none: no pod, none ready, all full", () => {
    expect(choosePeer([peer("a", { subset: "" })], "canary")).toEqual({ kind: "none", why: "no-pod" });
    expect(choosePeer([peer("a", { isReady: false })], "canary")).toEqual({ kind: "none", why: "not-ready" });
    expect(choosePeer([peer("a", { isReady: false }), peer("b", { capacity: 0 })], "canary")).toEqual({
      kind: "none",
      why: "full",
    });
  });

  it("does not choose a peer again that did not connect", () => {
    const peers = [peer("a"), peer("b", { inFlight: 3 })];
    expect(choosePeer(peers, "canary", "a")).toMatchObject({ peer: { address: "b" } });
    expect(choosePeer([peer("a")], "canary", "a")).toEqual({ kind: "none", why: "not-ready" });
  });
});

describe("isRetried", () => {
  it("is true once, and only for a connection that was never made", () => {
    expect(isRetried({ failed: "connect", attempts: 1, leftMs: 1 })).toBe(true);
    expect(isRetried({ failed: "connect", attempts: 2, leftMs: 1 })).toBe(false);
    expect(isRetried({ failed: "after-connect", attempts: 1, leftMs: 1 })).toBe(false);
    expect(isRetried({ failed: "connect", attempts: 1, leftMs: 0 })).toBe(false);
  });
});

describe("budgetMs", () => {
  it.each<[string, number]>([
    ["/validate?timeout=10s", 9_800],
    ["/validate?x=1&timeout=1m30s", 29_800],
    ["/validate?timeout=1.5s", 1_350],
    ["/validate?timeout=500ms", 450],
    ["/validate", 9_800],
    ["/validate?timeout=soon", 9_800],
    ["/validate?timeout=0s", 9_800],
  ])("of %s is %i ms", (target, expected) => {
    expect(budgetMs(target)).toBe(expected);
  });
});

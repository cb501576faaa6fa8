import { describe, expect, it } from "vitest";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import { budgetMs, choosePeer, MAX_AT_PEER } from "./choose-peer.ts";

const peer = (name: string, more: Partial<PodPeer> = {}): PodPeer => ({
  namespace: "ops",
  name,
  uid: name,
  address: "10.0.0.1",
  subset: "canary",
  isReady: true,
  ...more,
});
const loads = (inFlight: Readonly<Record<string, number>> = {}, random = 0) => ({
  inFlightAt: ({ name }: PodPeer) => inFlight[name] ?? 0,
  random: () => random,
});

describe("choosePeer", () => {
  const [a, b] = [peer("a"), peer("b")];
  it.each<[string, PodPeer[], Readonly<Record<string, number>>, string]>([
    ["takes the peer with the least in flight", [a, b], { a: 2, b: 1 }, "b"],
    ["skips other subsets", [peer("a", { subset: "" }), b], { b: 5 }, "b"],
    ["skips peers that are not ready", [peer("a", { isReady: false }), b], { b: 5 }, "b"],
    ["skips full peers", [a, b], { a: MAX_AT_PEER, b: 5 }, "b"],
  ])("%s", (_, peers, inFlight, name) => {
    expect(choosePeer(peers, "canary", loads(inFlight))).toMatchObject({ kind: "peer", peer: { name } });
  });

  it("takes any of equals", () => {
    const chosen = [0, 0.4, 0.5, 0.99].map((random) => choosePeer([a, b], "canary", loads({}, random)));
    expect(chosen).toMatchObject(["a", "a", "b", "b"].map((name) => ({ peer: { name } })));
  });

  it("says why there is none: no pod, none ready, all full", () => {
    const none = (why: string) => ({ kind: "none", why });
    expect(choosePeer([peer("a", { subset: "" })], "canary", loads())).toEqual(none("no-pod"));
    expect(choosePeer([peer("a", { isReady: false })], "canary", loads())).toEqual(none("not-ready"));
    expect(choosePeer([peer("a", { isReady: false }), b], "canary", loads({ b: MAX_AT_PEER }))).toEqual(none("full"));
  });

  it("chooses no pod without the listener, and says so if the subset has no other ready pod", () => {
    const direct = peer("old", { isDirect: true });
    expect(choosePeer([direct, b], "canary", loads({ b: 5 }))).toMatchObject({ peer: { name: "b" } });
    expect(choosePeer([direct], "canary", loads())).toEqual({ kind: "none", why: "direct" });
    expect(choosePeer([direct, peer("a", { isReady: false })], "canary", loads())).toEqual({ kind: "none", why: "direct" });
    expect(choosePeer([{ ...direct, isReady: false }], "canary", loads())).toMatchObject({ why: "no-pod" });
    expect(choosePeer([direct, b], "canary", loads({ b: MAX_AT_PEER }))).toMatchObject({ why: "full" });
  });

  it("does not choose a peer again that did not connect", () => {
    expect(choosePeer([a, b], "canary", loads({ b: 3 }), a)).toMatchObject({ peer: { name: "b" } });
    expect(choosePeer([a], "canary", loads(), a)).toEqual({ kind: "none", why: "not-ready" });
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

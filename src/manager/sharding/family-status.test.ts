import { describe, expect, it } from "vitest";
import { group, sharded, subset, table } from "../../../test/support/route-table.ts";
import type { SourceObject } from "../apps/app.ts";
import { describeFamily, memberStatus } from "./family-status.ts";

const shard = (name: string, namespaces: number, readyPods = 1, pods = 1) => ({ name, namespaces, readyPods, pods });
const ROOT = {
  name: "op",
  children: ["p-0-canary", "p-1-normal", "p-2-normal"],
  shard: undefined,
  normal: ["p-1-normal", "p-2-normal"],
  isByHash: false,
  shardingSize: undefined,
};
const counts = (...owned: [number, number]) => ({
  subsets: [shard("", 0, 1, 2), shard("p-0-canary", 3, 1, 2), shard("p-1-normal", owned[0]), shard("p-2-normal", owned[1])],
  desired: table([sharded(group("", "configmaps")), subset("p-1-normal", group("", "configmaps"))], {
    "": [],
    a: [1],
    b: [],
    c: [],
  }),
});

it("sums a root's shards, and leaves the canary out of the balance", () => {
  expect(describeFamily(ROOT, counts(20, 10))).toEqual({
    fields: {
      family: "op",
      shardPods: "3/4",
      shardNamespaces: 33,
      root: { childShardingConfigs: ROOT.children },
      balance: { largest: 20, smallest: 10, mean: 15, skew: 1.33 },
      gaps: 2,
      overlaps: 0,
      standby: 2,
    },
    balanced: { status: "True", reason: "Even", message: "2 normal shards own 10 to 20 namespaces, 15 on average" },
  });
});

describe("the namespaces of other clusters", () => {
  const abroad = { owned: new Map([["p-1-normal", 15]]), unknown: 0 };
  const balancedOf = (dividesInside: boolean, unknown = 0) =>
    describeFamily({ ...ROOT, dividesInside }, { ...counts(20, 5), abroad: { ...abroad, unknown } }).balanced;

  it("count if the shards divide them, and not if they have whole clusters", () => {
    expect(balancedOf(true)).toMatchObject({ status: "False", reason: "Skewed" });
    expect(balancedOf(false)).toEqual({
      status: "True",
      reason: "Even",
      message: "2 normal shards own 5 to 5 namespaces, 5 on average",
    });
  });

  it("are not judged while those of a cluster are not known", () => {
    const message =
      "2 normal shards own 5 to 20 namespaces, 12.5 on average, without the namespaces of a cluster, which are not known";
    expect(balancedOf(true, 1)).toEqual({ status: "Unknown", reason: "NotKnown", message });
    expect(balancedOf(false, 1)?.status).toBe("True");
  });
});

it("calls a family skewed if a shard has nearly nothing, though none has much more than the mean", () => {
  const names = Array.from({ length: 10 }, (_, index) => `p-${index + 1}-normal`);
  const family = { ...ROOT, children: names, normal: names };
  const subsets = names.map((name, at) => ({ name, namespaces: at === 9 ? 0 : 10, pods: 1, readyPods: 1 }));
  expect(describeFamily(family, { ...counts(0, 0), subsets }).balanced).toMatchObject({ status: "False", reason: "Skewed" });
});

it("calls a family skewed if a shard has far more than the mean, but not for one namespace", () => {
  expect(describeFamily(ROOT, counts(20, 2)).balanced).toMatchObject({ status: "False", reason: "Skewed" });
  expect(describeFamily(ROOT, counts(1, 0)).balanced).toMatchObject({ status: "True", reason: "Even" });
});

it("describes one shard of a hand-written family", () => {
  const family = { ...ROOT, name: "lock", children: undefined, shard: "p-1-normal", normal: ["p-1-normal"] };
  const { fields, balanced } = describeFamily(family, counts(20, 2));
  expect(fields).toMatchObject({ shard: "p-1-normal", shardPods: "1/1", shardNamespaces: 20 });
  expect([(fields as { root?: unknown }).root, balanced?.reason]).toEqual([undefined, "OneShard"]);
});

const READY = {
  type: "Ready",
  status: "True",
  reason: "InSync",
  message: "m",
  lastTransitionTime: "2025-01-01T00:00:00Z",
} as const;
const NOW = "2026-01-01T00:00:00Z";

function readyOf(subset: object, family: object = {}, before: object = {}) {
  const subsets = [shard("p-1-normal", 2), { ...shard("p-2-normal", 3), ...subset }];
  const status = { subsets, conditions: [{ ...READY, ...family }] };
  const object = { metadata: { name: "op" }, status } as unknown as SourceObject;
  const member = { metadata: { name: "p-2-normal", generation: 4 }, status: { conditions: [{ ...READY, ...before }] } };
  return memberStatus({ ref: { kind: "", namespace: "", name: "op" }, object }, member as never, NOW).conditions?.[0];
}

describe("the Ready of one shard", () => {
  it.each([
    ["Serving", "True", {}, {}],
    ["Idle", "True", { namespaces: 0 }, {}],
    ["SubsetWithoutPods", "False", { reason: "SubsetWithoutPods" }, {}],
    ["Invalid", "False", {}, { status: "False", reason: "Invalid" }],
    ["NotPlaced", "False", {}, { status: "False", reason: "NotPlaced" }],
  ])("is %s", (reason, status, subset, family) => {
    expect(readyOf(subset, family)).toMatchObject({ reason, status, observedGeneration: 4 });
  });

  it("says nothing of another shard's trouble, nor of a handover or of the route's version", () => {
    const calm = readyOf({});
    for (const family of [
      { status: "False", reason: "ProxyLost", message: "the proxy of pod op-0" },
      { reason: "Draining", message: "3 namespaces move" },
      { message: "12 of 64 proxies enforce route 18" },
    ])
      expect(readyOf({}, family)).toEqual(calm);
  });

  it("names the object that says more, and keeps the time of its last change", () => {
    const lost = readyOf({ reason: "ProxyLost" });
    expect(lost?.message).toBe("a proxy of the shard is disconnected; the status of ShardingConfig op says more");
    expect(lost?.lastTransitionTime).toBe(NOW);
    expect(readyOf({ reason: "ProxyLost" }, {}, { status: "False" })?.lastTransitionTime).toBe(READY.lastTransitionTime);
  });

  it("is not known before the family's status has the shard", () => {
    expect(readyOf({ name: "p-3-normal" })).toBeUndefined();
  });
});

it("names shards that can own nothing, because there are fewer hashes, and what to do", () => {
  const normal = Array.from({ length: 40 }, (_, index) => `p-${index + 1}-normal`);
  expect(describeFamily({ ...ROOT, normal, isByHash: true }, counts(1, 1)).balanced).toEqual({
    status: "False",
    reason: "EmptyShards",
    message:
      "40 normal shards divide 32 hashes with placement Legacy, so 8 of them own nothing: use 32 shards, or spec.root.placement Balanced",
  });
  expect(describeFamily({ ...ROOT, normal: normal.slice(0, 8), isByHash: true }, counts(1, 1)).balanced).toMatchObject({
    reason: "Even",
  });
});

it("names pods for which there is no shard, but not those that only wait for one", () => {
  const normal = Array.from({ length: 64 }, (_, index) => `p-${index + 1}-normal`);
  const balancedOf = (more: object) => describeFamily({ ...ROOT, ...more }, counts(1, 1)).balanced;
  expect(balancedOf({ normal })).toEqual({
    status: "False",
    reason: "PodsWithoutShard",
    message:
      "2 pods belong to no shard and stand by, since there can be 64 normal shards: raise spec.root.auto.everyShardReplicas, or scale the StatefulSet down",
  });
  expect(balancedOf({ shardingSize: 2 })?.message).toBe(
    "2 pods belong to no shard and stand by, since spec.root.auto.shardingSize is 2: raise or remove it, or scale the StatefulSet down",
  );
  expect(balancedOf({})).toMatchObject({ reason: "Even" });
  expect(balancedOf({ children: undefined, normal })).toMatchObject({ reason: "Even" });
});

it("says of ready shards without namespaces why they wait, rather than that the numbers are skewed", () => {
  expect(
    describeFamily({ ...ROOT, joiningText: "p-2-normal is ready and will get namespaces soon" }, counts(20, 0)).balanced,
  ).toEqual({
    status: "False",
    reason: "Joining",
    message: "p-2-normal is ready and will get namespaces soon; 2 normal shards own 0 to 20 namespaces, 10 on average",
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { samplePlacement, sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { INJECTED_LABEL, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import type { Pod } from "../../kube/client/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { familiesOf } from "./family.ts";
import { coveringSelector, familyPods, ordinalOf, readyShards, restartingShards } from "./family-pods.ts";
import { shardsOfConfigs, shardsOfRoot } from "./shards.ts";

const PLACEMENT = samplePlacement({ start: 3, shards: 3, active: [1, 2] });
const POD_NAME = "statefulset.kubernetes.io/pod-name";
const pod = (name: string) => ({ [POD_NAME]: name });
const podIn = (...values: string[]) => ({ matchExpressions: [{ key: POD_NAME, operator: "In" as const, values }] });

function podsOfRoot(spec: Readonly<Record<string, unknown>> = {}) {
  const root = sampleShardingRoot({}, spec) as unknown as ShardingConfig;
  const [family] = familiesOf([root]);
  if (family === undefined) throw new Error("no family");
  return familyPods(family, shardsOfRoot(root, PLACEMENT).shards);
}

describe("the pods of a root", () => {
  it("are those of its StatefulSet, also those that no shard has yet", () => {
    const { selects } = podsOfRoot();
    const names = ["shop-operator-0", "shop-operator-99", "shop-operator", "shop-operator-x", "other-0"];
    expect(names.map((name) => selects(pod(name)))).toEqual([true, true, false, false, false]);
    expect([selects(undefined), selects({})]).toEqual([false, false]);
  });

  it("belong to the canary first and then to the shards, by ordinals from the StatefulSet's start; all others stand by", () => {
    const { subsetOf } = podsOfRoot();
    const shardOf = (ordinal: number) => subsetOf(pod(`shop-operator-${ordinal}`));
    expect([0, 2, 3, 4, 5, 6, 8, 9, 10].map(shardOf)).toEqual([
      "",
      "",
      "shop-0-canary",
      "shop-1-normal",
      "shop-1-normal",
      "shop-2-normal",
      "shop-3-normal",
      "shop-3-normal",
      "",
    ]);
  });

  it("get the label of their shard by the ordinal alone, also before the placement knows the shard", () => {
    const labelled = (placement: object | undefined, root: Readonly<Record<string, unknown>> = {}) => {
      const metadata = { name: "shop", namespace: "ops" };
      const object = { ...sampleShardingRoot(root), metadata, status: { placement } };
      const [family] = familiesOf([object as unknown as ShardingConfig]);
      const pods = family && familyPods(family, []);
      return [0, 2, 3, 4, 9, 10, 200].map((ordinal) => pods?.shardOfNewPod?.(pod(`shop-operator-${ordinal}`)));
    };
    const none = undefined;
    const placed = { start: 3, shards: 1, active: [1] };
    expect(labelled(none)).toEqual(["shop-0-canary", "shop-1-normal", "shop-2-normal", "shop-2-normal", none, none, none]);
    expect(labelled(placed)).toEqual([none, none, "shop-0-canary", "shop-1-normal", "shop-3-normal", none, none]);
    const follows = { auto: { everyShardReplicas: 2 }, canary: undefined };
    expect(labelled(placed, follows)).toEqual([
      none,
      none,
      "shop-1-normal",
      "shop-1-normal",
      "shop-4-normal",
      "shop-4-normal",
      none,
    ]);
  });

  it.each([{ matchLabels: { app: "shop" } }, podIn("shop-operator-0")])(
    "are all of its StatefulSet, each in the shard of its ordinal, also those that the selector %j of the root misses",
    (selector) => {
      const { selects, subsetOf, shardOfNewPod: _, ...selection } = podsOfRoot({ selector });
      expect(selection).toEqual({
        name: "shop",
        statefulSet: "shop-operator",
        selector: { matchExpressions: [{ key: POD_NAME, operator: "Exists" }] },
        checkedSelector: selector,
      });
      expect([3, 4, 99].map((ordinal) => selects(pod(`shop-operator-${ordinal}`)))).toEqual([true, true, true]);
      expect(subsetOf(pod("shop-operator-4"))).toBe("shop-1-normal");
      expect(selects({ ...pod("other-0"), app: "shop" })).toBe(false);
    },
  );

  it("all stand by while the shards are not known", () => {
    const [family] = familiesOf([sampleShardingRoot() as unknown as ShardingConfig]);
    expect(family && familyPods(family, []).subsetOf(pod("shop-operator-0"))).toBe("");
  });
});

it("the pods of hand-written configs belong to the first config that selects them, and the webhook's selector matches them all", () => {
  const config = (name: string, values: string[]) => {
    const selector = { matchExpressions: [{ key: "shard", operator: "In", values }] };
    return { ...sampleShardingConfig({ selector }), metadata: { name, namespace: "ops" } } as unknown as ShardingConfig;
  };
  const configs = [config("b", ["y", "z"]), config("a", ["x", "y"])];
  const [family] = familiesOf(configs);
  if (family === undefined) throw new Error("no family");
  const { name, selector, selects, subsetOf } = familyPods(family, shardsOfConfigs(configs).shards);
  expect(name).toBe("shop-lock");
  expect(["x", "y", "z", "other"].map((shard) => [selects({ shard }), subsetOf({ shard })])).toEqual([
    [true, "a"],
    [true, "a"],
    [true, "b"],
    [false, ""],
  ]);
  expect(selector).toEqual({ matchExpressions: [{ key: "shard", operator: "In", values: ["x", "y", "z"] }] });
});

it("the ordinal of a pod is known only of pods of that StatefulSet", () => {
  const ordinals = ["web-0", "web-10", "web-a-1", "web", "web-", "web-01", "web-1x", "other-1", "web-9999999999"];
  expect(ordinals.map((name) => ordinalOf("web", name))).toEqual([0, 10, ...Array(7).fill(undefined)]);
});

const podOf = (name: string, isReady = true, metadata: object = {}): Pod =>
  ({
    metadata: { name, labels: { [INJECTED_LABEL]: "shop" }, ...metadata },
    spec: { initContainers: [{ name: PROXY_CONTAINER }] },
    status: { conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
  }) as unknown as Pod;

/** The ready shards of a root with one canary pod and two pods for each normal shard. */
function shards(start: number, pods: readonly Pod[], active: readonly number[] = []): number[] {
  const { root } = (sampleShardingRoot() as unknown as ShardingConfig).spec;
  if (root === undefined) throw new Error("no root");
  return [...readyShards(root, pods, { family: "shop", start, active })];
}

it("a shard is ready with one of its pods; the canary's pods make no normal shard ready", () => {
  expect(shards(0, [podOf("shop-operator-0")])).toEqual([]);
  expect(shards(0, [podOf("shop-operator-2"), podOf("shop-operator-1", false)])).toEqual([1]);
  expect(
    shards(
      0,
      ["3", "4", "5"].map((ordinal) => podOf(`shop-operator-${ordinal}`)),
    ),
  ).toEqual([2, 3]);
  expect(shards(0, [podOf("other-1"), { metadata: { name: "shop-operator-1" } } as Pod])).toEqual([]);
});

it("a ready pod without the proxy of the family keeps an active shard, and lets no other shard join", () => {
  const bare = [
    podOf("shop-operator-1", true, { labels: {} }),
    podOf("shop-operator-3", true, { labels: { [INJECTED_LABEL]: "b" } }),
  ];
  expect(shards(0, bare)).toEqual([]);
  expect(shards(0, bare, [2])).toEqual([2]);
  expect(shards(0, [...bare, podOf("shop-operator-2")])).toEqual([1]);
});

describe("the shards that the manager restarts", () => {
  const { root } = (sampleShardingRoot() as unknown as ShardingConfig).spec;
  const restarting = (status: object, pods: readonly Pod[]) =>
    root && [...restartingShards(root, { start: 0, replicas: 5 }, status as ShardingConfig["status"], pods)];
  const named = (ordinal: number, isReady = true, metadata: object = {}) => podOf(`shop-operator-${ordinal}`, isReady, metadata);
  const all = [0, 1, 2, 3, 4].map((ordinal) => named(ordinal, true, { uid: `uid-${ordinal}` }));
  const without = (ordinal: number, ...more: Pod[]) => [...all.filter((_, index) => index !== ordinal), ...more];
  const restart = { pod: "shop-operator-3", uid: "uid-3" };

  it("are that of the evicted pod until it is replaced, and none before its eviction", () => {
    expect(restarting({ restart }, all)).toEqual([]);
    expect(restarting({ restart }, without(3))).toEqual([2]);
    expect(
      restarting({ restart }, without(3, named(3, true, { uid: "uid-3", deletionTimestamp: "2026-01-01T00:00:00Z" }))),
    ).toEqual([2]);
    expect(restarting({}, without(3))).toEqual([]);
  });

  it("are those of missing pods and of new ones that are not ready, while a rollout goes on", () => {
    const rollout = { revision: "new", waitingFor: "NotReady" };
    const young = named(3, false, { labels: { "controller-revision-hash": "new" } });
    expect(restarting({ rollout }, without(1))).toEqual([1]);
    expect(restarting({ rollout }, without(3, young))).toEqual([2]);
    expect(restarting({ rollout }, without(3, named(3, false)))).toEqual([]);
    for (const waitingFor of ["Paused", "NotOnDelete", "TooManyPods", "UnknownShard"]) {
      expect(restarting({ rollout: { ...rollout, waitingFor } }, without(1))).toEqual([]);
    }
    expect(restarting({ rollout: { revision: "new" } }, without(1))).toEqual([]);
  });

  it("are none beyond the largest family, however many replicas there are", () => {
    const status = { rollout: { revision: "new", waitingFor: "NotReady" } } as ShardingConfig["status"];
    expect(root && restartingShards(root, { start: 0, replicas: 2 ** 31 - 1 }, status, []).size).toBe(64);
  });
});

it("a terminating pod is not ready", () => {
  expect(shards(0, [podOf("shop-operator-1", true, { deletionTimestamp: "2026-01-01T00:00:00Z" })])).toEqual([]);
});

it("ordinals count from the StatefulSet's start; pods below it are of no shard", () => {
  expect(
    shards(
      3,
      ["0", "2", "3"].map((ordinal) => podOf(`shop-operator-${ordinal}`)),
    ),
  ).toEqual([]);
  expect(shards(3, [podOf("shop-operator-4")])).toEqual([1]);
  expect(shards(3, [podOf("shop-operator-8")])).toEqual([3]);
});

it("has the values of all selectors, for the keys that all restrict", () => {
  const labelled = { ...podIn("op-0"), matchLabels: { app: "op" } };
  expect(coveringSelector([labelled, podIn("op-1", "op-2")])).toEqual(podIn("op-0", "op-1", "op-2"));
  expect(coveringSelector([{ matchLabels: { app: "op" } }])).toEqual({
    matchExpressions: [{ key: "app", operator: "In", values: ["op"] }],
  });
});

it("is undefined if there is no common key", () => {
  expect(coveringSelector([{ matchLabels: { a: "1" } }, { matchLabels: { b: "1" } }])).toBeUndefined();
  expect(coveringSelector([{ matchExpressions: [{ key: "a", operator: "Exists" }] }])).toBeUndefined();
});

it("matches each pod that one of the selectors matches", () => {
  const selector = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("1", "2"), { minKeys: 1 });
  fc.assert(
    fc.property(fc.array(selector, { minLength: 1, maxLength: 3 }), selector, (all, labels) => {
      const selectors = all.map((matchLabels) => ({ matchLabels }));
      const covering = coveringSelector(selectors);
      fc.pre(covering !== undefined && selectors.some((each) => matchesSelector(each, labels)));
      expect(matchesSelector(covering, labels)).toBe(true);
    }),
  );
});

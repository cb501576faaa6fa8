import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleShardingRoot, shardingProblemsOf } from "../../../test/support/sharding-config.ts";
import { type ShardingConfig, validateShardingConfig } from "../../api/sharding-config.ts";
import { POD_NAME } from "../../api/sharding-keys.ts";
import { formatTerms, termsOfSelector } from "../../kube/label-selector.ts";
import { childrenOf, homeShard, shardPlacer } from "./children.ts";
import { type Placement, placementOf } from "./placement.ts";
import { computedKeys, splitSelector } from "./shards.ts";

const READY = { ready: new Set<number>(), restarting: new Set<number>() };
const NAMES = Array.from({ length: 200 }, (_, index) => `team-${index}`);
const KEY = "ctrlmesh.kusionstack.io";

function rootOf(root: object = {}, spec: object = {}): ShardingConfig {
  const checked = validateShardingConfig(sampleShardingRoot({ ...root }, { ...spec }));
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return { ...checked.value, metadata: { ...checked.value.metadata, uid: "uid-1" } };
}

function placed(config: ShardingConfig, change: Partial<Placement> = {}, replicas = 99): Placement {
  const { root } = config.spec;
  if (root === undefined) throw new Error("no root");
  const statefulSet = { replicas, start: 0 };
  const step = placementOf({ previous: undefined, root, statefulSet, ...READY, namespaces: NAMES, nowMs: 0 });
  if (step === undefined) throw new Error("no placement");
  return { ...step.placement, ...change };
}

/** Each child in a line: its name, pods and the selector of its first limit. */
function lines(config: ShardingConfig, placement = placed(config)): string[] {
  return childrenOf(config, placement).map(({ metadata, spec }) => {
    const [pods, limit] = [spec.selector ?? {}, spec.limits?.[0]?.selector ?? {}];
    const text = `${metadata.name}: ${formatTerms(termsOfSelector(pods))}: ${formatTerms(termsOfSelector(limit))}`;
    return text.replaceAll("statefulset.kubernetes.io/pod-name", "POD").replaceAll(`${KEY}/`, "");
  });
}

describe("the children of a root", () => {
  it("are as the original makes them: the canary, then the normal shards with their batches", () => {
    expect(lines(rootOf({ auto: { shardingSize: 3, everyShardReplicas: 2 } }))).toEqual([
      "shop-0-canary: POD=shop-operator-0: namespace=canary-a",
      "shop-1-normal: POD in (shop-operator-1,shop-operator-2): namespace!=canary-a,shard-hash in (0,1,10,2,3,4,5,6,7,8,9)",
      "shop-2-normal: POD in (shop-operator-3,shop-operator-4): namespace!=canary-a,shard-hash in (11,12,13,14,15,16,17,18,19,20,21)",
      "shop-3-normal: POD in (shop-operator-5,shop-operator-6): namespace!=canary-a,shard-hash in (22,23,24,25,26,27,28,29,30,31)",
    ]);
  });

  it("have the root as owner, its namespace and the label of the original", () => {
    const [child] = childrenOf(rootOf(), placed(rootOf()));
    const owner = { name: "shop", uid: "uid-1", controller: true, blockOwnerDeletion: true };
    expect(child?.metadata).toEqual({
      namespace: "ops",
      name: "shop-0-canary",
      labels: { [`${KEY}/auto-sharding-root`]: "shop" },
      ownerReferences: [{ apiVersion: `${KEY}/v1alpha1`, kind: "ShardingConfig", ...owner }],
    });
  });

  it("are valid, and have the root's lock, webhook and terms of objects, and select their pods by name alone", () => {
    const resourceSelector = [
      { relateResources: [{ apiGroups: ["*"], resources: ["pods"] }], selector: { matchLabels: { app: "shop" } } },
      { relateResources: [{ apiGroups: ["apps"], resources: ["deployments"] }] },
    ];
    const webhook = { certDir: "/certs", port: 9443 };
    const config = rootOf({ resourceSelector }, { selector: { matchLabels: { role: "operator" } }, webhook });
    for (const child of childrenOf(config, placed(config))) {
      expect(shardingProblemsOf(child)).toEqual([]);
      expect(child.spec).toMatchObject({ controller: { leaderElectionName: "shop-lock" }, webhook });
      expect(child.spec.selector).toEqual({ matchExpressions: [expect.objectContaining({ key: POD_NAME, operator: "In" })] });
      expect(child.spec.limits?.map(({ relateResources }) => relateResources)).toEqual(
        resourceSelector.map(({ relateResources }) => relateResources),
      );
      expect(child.spec.limits?.map(({ selector }) => selector?.matchLabels)).toEqual([{ app: "shop" }, undefined]);
    }
  });

  it("begin at the first ordinal of the StatefulSet, and at the first pod without a canary", () => {
    const config = rootOf({ canary: undefined, auto: { shardingSize: 2, everyShardReplicas: 1 } });
    expect(lines(config, placed(config, { start: 3 })).map((line) => line.split(":").slice(0, 2).join())).toEqual([
      "shop-1-normal, POD=shop-operator-3",
      "shop-2-normal, POD=shop-operator-4",
    ]);
  });

  it("are ordered by number", () => {
    const config = rootOf({ canary: undefined, auto: { shardingSize: 11, everyShardReplicas: 1 } });
    expect(childrenOf(config, placed(config)).map(({ metadata }) => metadata.name)).toEqual(
      Array.from({ length: 11 }, (_, index) => `shop-${index + 1}-normal`),
    );
  });

  it("contain nothing if the shard is not active, and divide the hashes among the others", () => {
    const config = rootOf({ canary: undefined });
    const selectors = lines(config, placed(config, { active: [1, 3] })).map((line) => line.split(": ")[2]);
    expect(selectors).toEqual([
      "shard-hash in (0,1,10,11,12,13,14,15,2,3,4,5,6,7,8,9)",
      "!shard-hash",
      "shard-hash in (16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31)",
    ]);
  });

  it("include a shard that the root should no longer have as long as it is active", () => {
    const config = rootOf({ canary: undefined });
    const names = childrenOf(config, placed(config, { shards: 2, active: [4] })).map(({ metadata }) => metadata.name);
    expect(names).toEqual(["shop-1-normal", "shop-2-normal", "shop-4-normal"]);
  });

  it("name themselves where the original's terms cannot say what they own", () => {
    const ends = (root: object) => lines(rootOf(root)).map((line) => line.split(": ")[2]);
    const own = ["shard=shop-1-normal", "shard=shop-2-normal", "shard=shop-3-normal"];
    const both = { replicas: 1, inNamespaces: ["a"], inShardHash: ["7"] };
    expect(ends({ canary: both })[0]).toBe("shard=shop-0-canary");
    expect(ends({ canary: both })[1]).toBe("namespace!=a,shard-hash!=7,shard-hash in (0,1,10,2,3,4,5,6,7,8,9)");
    expect(ends({ canary: { replicas: 1, percent: 5 } })).toEqual(["shard=shop-0-canary", ...own]);
    expect(ends({ placement: "Balanced" })).toEqual(["namespace=canary-a", ...own]);
  });

  it("are none for a config without a root", () => {
    const { root: _, ...spec } = rootOf().spec;
    expect(childrenOf({ ...rootOf(), spec }, placed(rootOf()))).toEqual([]);
  });
});

describe("the shard of a namespace", () => {
  const canary = fc.option(
    fc
      .record(
        {
          inNamespaces: fc.uniqueArray(fc.constantFrom(...NAMES.slice(0, 9)), { minLength: 1 }),
          inShardHash: fc.uniqueArray(fc.integer({ min: 0, max: 31 }).map(String), { minLength: 1, maxLength: 4 }),
          percent: fc.integer({ min: 1, max: 99 }),
        },
        { requiredKeys: [] },
      )
      .filter((fields) => Object.keys(fields).length > 0)
      .map((fields) => ({ replicas: 2, ...fields })),
    { nil: undefined },
  );
  const active = fc.uniqueArray(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 });

  it("is the only one whose child contains it, whatever the root", () => {
    fc.assert(
      fc.property(
        canary,
        fc.constantFrom("Legacy", "Balanced"),
        active,
        fc.integer({ min: 1, max: 12 }),
        (canaryOf, placement, list, size) => {
          const config = rootOf({ canary: canaryOf, placement, auto: { shardingSize: size, everyShardReplicas: 1 } });
          const sorted = [...list].sort((a, b) => a - b);
          const previous = placed(config, { active: sorted, map: undefined });
          const { root } = config.spec;
          if (root === undefined) throw new Error("no root");
          const facts = { previous, root: { ...root, auto: { ...root.auto, shardingSize: 12 } }, statefulSet: undefined };
          const step = placementOf({
            ...facts,
            ...READY,
            ready: new Set(list),
            namespaces: NAMES,
            nowMs: 0,
          });
          if (step === undefined) throw new Error("no placement");
          const now = { ...step.placement, shards: size };
          const tests = childrenOf(config, now).map(({ metadata, spec }) => ({
            name: metadata.name,
            ...splitSelector(spec.limits?.[0]?.selector),
          }));
          const shardOf = shardPlacer(root, now);
          for (const name of NAMES) {
            const keys = computedKeys(name, shardOf(name));
            expect(tests.filter(({ contains }) => contains(keys)).map((test) => test.name)).toEqual([shardOf(name)]);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("is the lowest active normal shard for cluster-scoped objects", () => {
    const { root } = rootOf().spec;
    expect(root && homeShard(root, placed(rootOf(), { active: [2, 3] }))).toBe("shop-2-normal");
  });
});

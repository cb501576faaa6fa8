import { describe, expect, it } from "vitest";
import { samplePlacement, sampleShardingConfig, sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { BUCKETS, CLUSTER_SCOPE } from "../../kube/place.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { namespacesOf, type RouteTable } from "../../mesh/ownership/table.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import { balancedMap, countNamespaces, type SlotMap } from "./balanced-map.ts";
import { countGaps, countOverlaps } from "./family-status.ts";
import type { Placement } from "./placement.ts";
import { routeOfShards } from "./shard-rules.ts";
import { shardsOfConfigs, shardsOfRoot } from "./shards.ts";

const KEY = "ctrlmesh.kusionstack.io/namespace";
const limit = (resources: readonly string[], operator: string, values: readonly string[]) => ({
  relateResources: [{ apiGroups: [""], resources }],
  selector: { matchExpressions: [{ key: KEY, operator, values }] },
});

function family(limits: Readonly<Record<string, readonly object[]>>, namespaces: readonly string[]): RouteTable {
  const configs = Object.entries(limits).map(([name, own]) => ({ ...sampleShardingConfig({ limits: own }), metadata: { name } }));
  const shards = shardsOfConfigs(configs as unknown as ShardingConfig[]);
  return compileNow(
    routeOfShards(shards),
    namespaces.map((name) => ({ name, labels: {} })),
  );
}

function ownerIn(table: RouteTable, resource: string, namespace: string): string {
  const owner = ownersOf(table, "", resource).ownerOf(namespace);
  return owner.kind === "subset" ? owner.subset : owner.kind;
}

describe("a hand-written family", () => {
  const table = family(
    {
      "shard-10": [limit(["pods"], "In", ["a", "b"])],
      "shard-2": [limit(["pods"], "In", ["b", "c"]), limit(["services"], "In", ["c"])],
    },
    ["a", "b", "c", "d"],
  );

  it("gives what two shards contain to the first, and what none contains to nobody", () => {
    expect(["a", "b", "c", "d"].map((name) => ownerIn(table, "pods", name))).toEqual([
      "shard-10",
      "shard-2",
      "shard-2",
      "nobody",
    ]);
    expect(countOverlaps(table)).toBe(1);
    // Services in a and b, everything in d.
    expect(countGaps(table)).toBe(3);
  });

  it("has what one shard names as a resource of all", () => {
    expect(ownerIn(table, "services", "a")).toBe("nobody");
    expect(ownerIn(table, "services", "c")).toBe("shard-2");
    expect(ownerIn(table, "configmaps", "a")).toBe("everyone");
  });

  it("gives cluster-scoped objects to the first shard that names the resource", () => {
    expect(ownerIn(table, "pods", CLUSTER_SCOPE)).toBe("shard-2");
    const other = family({ a: [limit(["pods"], "In", ["x"])], b: [limit(["nodes"], "In", ["y"])] }, []);
    expect(ownerIn(other, "nodes", CLUSTER_SCOPE)).toBe("b");
  });

  it("does not know a namespace that it was not compiled with", () => {
    expect(ownerIn(table, "pods", "later")).toBe("unknown");
  });
});

describe("the family of a root", () => {
  const placement = samplePlacement({ start: 0, shards: 3, active: [2, 3] });
  const namespaces = Array.from({ length: 200 }, (_, index) => ({ name: `team-${index}`, labels: {} }));
  const compiled = (selector: object) => {
    const resourceSelector = [{ relateResources: [{ apiGroups: [""], resources: ["pods"] }], ...selector }];
    return compileNow(
      routeOfShards(shardsOfRoot(sampleShardingRoot({ resourceSelector }) as unknown as ShardingConfig, placement)),
      namespaces,
    );
  };

  it("gives each namespace to one shard, and cluster-scoped objects to the home shard", () => {
    const table = compiled({});
    const owners = namespaces.map(({ name }) => ownerIn(table, "pods", name));
    expect(new Set(owners)).toEqual(new Set(["shop-2-normal", "shop-3-normal"]));
    expect(ownerIn(table, "pods", CLUSTER_SCOPE)).toBe("shop-2-normal");
    expect([countGaps(table), countOverlaps(table)]).toEqual([0, 0]);
  });

  it("gives buckets of cluster-scoped names to shards as it gives namespaces, if they are owned by name", () => {
    const canary = { replicas: 1, inShardHash: ["7"] };
    const root = { canary, clusterScoped: "ByName" } as const;
    const byName = (more: object, of: Placement) =>
      compileNow(
        routeOfShards(shardsOfRoot(sampleShardingRoot({ ...root, ...more }) as unknown as ShardingConfig, of)),
        namespaces,
      );
    const legacy = byName({}, placement);
    const hashOf = (place: string) => BUCKETS.indexOf(place);
    for (const place of BUCKETS) {
      const normal = hashOf(place) < 16 ? "shop-2-normal" : "shop-3-normal";
      expect([place, ownerIn(legacy, "pods", place)]).toEqual([place, hashOf(place) === 7 ? "shop-0-canary" : normal]);
    }
    // A name that is not known belongs to the home shard, and status counts namespaces only.
    expect(ownerIn(legacy, "pods", CLUSTER_SCOPE)).toBe("shop-2-normal");
    expect([namespacesOf(legacy).length, countGaps(legacy), countOverlaps(legacy)]).toEqual([200, 0, 0]);
    const map = balancedMap(undefined, [2, 3], countNamespaces([]));
    const owners = (of: readonly number[], by: SlotMap) => {
      const table = byName({ placement: "Balanced" }, { ...placement, active: of, map: by });
      return BUCKETS.map((place) => ownerIn(table, "pods", place));
    };
    const [two, three] = [owners([2, 3], map), owners([1, 2, 3], balancedMap(map, [1, 2, 3], countNamespaces([])))];
    expect(new Set(two)).toEqual(new Set(["shop-0-canary", "shop-2-normal", "shop-3-normal"]));
    const moved = three.filter((owner, at) => owner !== two[at]);
    expect(new Set(moved)).toEqual(new Set(["shop-1-normal"]));
  });

  it("has the gaps that an entry of the root makes", () => {
    const table = compiled({ selector: { matchExpressions: [{ key: KEY, operator: "NotIn", values: ["team-1", "team-2"] }] } });
    expect(ownerIn(table, "pods", "team-1")).toBe("nobody");
    expect(countGaps(table)).toBe(2);
  });

  it("has one rule for each shard, with the resources of all entries that test namespaces alike", () => {
    const entry = (resource: string, selector?: object) => ({
      relateResources: [{ apiGroups: [""], resources: [resource] }],
      ...(selector === undefined ? {} : { selector }),
    });
    const apart = { matchExpressions: [{ key: KEY, operator: "NotIn", values: ["team-1"] }] };
    const resourceSelector = [entry("pods"), entry("services", { matchLabels: { app: "shop" } }), entry("secrets", apart)];
    const table = compileNow(
      routeOfShards(shardsOfRoot(sampleShardingRoot({ resourceSelector }) as unknown as ShardingConfig, placement)),
      namespaces,
    );
    const own = table.rules.flatMap((rule) => (rule.kind === "subset" && rule.subset === "shop-2-normal" ? [rule] : []));
    expect(own.map(({ resources }) => resources.flatMap((each) => each.resources))).toEqual([["pods", "services"], ["secrets"]]);
    const owners = ["pods", "services", "secrets"].map((resource) => ownerIn(table, resource, "team-1"));
    expect(owners).toEqual(["shop-2-normal", "shop-2-normal", "nobody"]);
  });

  it("has few classes, however many namespaces there are", () => {
    const table = compiled({});
    expect(table.classOf.size).toBe(201);
    expect(table.classes.length).toBe(2);
  });
});

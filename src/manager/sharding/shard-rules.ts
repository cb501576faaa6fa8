// The rules of a family's route. Pure; tested by golden files. The family must have no problems
// (objectLimitProblems). As with VirtualApps, the rules contain no selector of namespaces, so all proxies
// decide alike.
import { BUCKETS, CLUSTER_SCOPE } from "../../kube/place.ts";
import type { RouteRule } from "../../route/table.ts";
import type { RouteSpec } from "../apps/compile/route-spec.ts";
import { objectLimits, unionOf } from "./object-limits.ts";
import type { FamilyShards, Shard } from "./shards.ts";
import { computedKeys, type NamespaceTest } from "./split-selector.ts";

interface ShardRow {
  readonly rule: RouteRule & { readonly kind: "subset" };
  readonly index: number;
  readonly contains: NamespaceTest;
}

export function routeOfShards({ shards, shardOf, home, isByName }: FamilyShards): RouteSpec {
  const resources = unionOf(shards.flatMap(({ rules }) => rules));
  const origin = home === undefined ? "spec.limits" : "spec.root.resourceSelector";
  const common: RouteRule[] = [{ kind: "sharded", resources, origin }, ...objectLimits(shards)];
  const own = shards.flatMap(subsetRules).map((row, at): ShardRow => ({ ...row, index: common.length + at }));
  const bySubset = Map.groupBy(own, ({ rule }) => rule.subset);
  const indices = (rows: readonly ShardRow[]) => rows.map(({ index }) => index);
  const membersOf = (name: string) => {
    const shard = shardOf?.(name);
    const keys = computedKeys(name, shard);
    // The rules of the other shards of a root do not contain the namespace.
    const candidates = shard === undefined ? own : (bySubset.get(shard) ?? []);
    return indices(candidates.filter(({ contains }) => contains(keys)));
  };
  const inScope = indices(home === undefined ? own : (bySubset.get(home) ?? []));
  return {
    rules: [...common, ...own.map(({ rule }) => rule)],
    sharedResources: [],
    places: [[CLUSTER_SCOPE, inScope], ...(isByName ? BUCKETS : []).map((bucket) => [bucket, membersOf(bucket)] as const)],
    expressions: [],
    membersOf: ({ name }) => membersOf(name),
  };
}

/** One rule for all entries with the same test, as nearly all entries of a root have. */
function subsetRules({ name: subset, rules }: Shard): Omit<ShardRow, "index">[] {
  return [...Map.groupBy(rules, ({ testText }) => testText).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const { origin, contains } = first;
    return [{ rule: { kind: "subset", subset, resources: unionOf(same), origin }, contains }];
  });
}

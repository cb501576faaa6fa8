// Compiles the shards of a family and the namespaces into a route table. Pure; tested by golden files. The family must have no problems
// (objectLimitProblems). As with VirtualApps, the table contains no selector of namespaces, so all proxies decide alike.
import { BUCKETS, CLUSTER_SCOPE } from "../../../kube/place.ts";
import type { RouteRule, RouteTable } from "../../../route/table.ts";
import { computedKeys, type NamespaceTest } from "./namespace-test.ts";
import { objectLimits, unionOf } from "./object-limits.ts";
import type { FamilyShards, Shard } from "./shards.ts";

interface CompiledRule {
  readonly rule: RouteRule & { readonly kind: "subset" };
  readonly index: number;
  readonly contains: NamespaceTest;
}

/** The desired route table of one family, without fences. */
export function compileShards(
  { shards, shardOf, home, isByName }: FamilyShards,
  namespaces: Iterable<{ readonly name: string }>,
): RouteTable {
  const resources = unionOf(shards.flatMap(({ rules }) => rules));
  const origin = home === undefined ? "spec.limits" : "spec.root.resourceSelector";
  const common: RouteRule[] = [{ kind: "sharded", resources, origin }, ...objectLimits(shards)];
  const own = shards.flatMap(subsetRules).map((row, at): CompiledRule => ({ ...row, index: common.length + at }));
  const bySubset = Map.groupBy(own, ({ rule }) => rule.subset);
  const classes: number[][] = [];
  const indexOfClass = new Map<string, number>();
  const classOf = new Map<string, number>();
  const put = (name: string, members: readonly CompiledRule[]) => {
    const indices = members.map(({ index }) => index);
    const key = indices.join(",");
    const index = indexOfClass.get(key) ?? classes.push(indices) - 1;
    indexOfClass.set(key, index);
    classOf.set(name, index);
  };
  put(CLUSTER_SCOPE, home === undefined ? own : (bySubset.get(home) ?? []));
  const places = [...(isByName ? BUCKETS : []), ...Array.from(namespaces, ({ name }) => name)];
  for (const name of places) {
    const shard = shardOf?.(name);
    const keys = computedKeys(name, shard);
    // The rules of the other shards of a root do not contain the namespace.
    const candidates = shard === undefined ? own : (bySubset.get(shard) ?? []);
    const members = candidates.filter(({ contains }) => contains(keys));
    put(name, members);
  }
  return { rules: [...common, ...own.map(({ rule }) => rule)], classes, classOf, sharedResources: [], fenced: new Set() };
}

/** One rule for all entries with the same test, as nearly all entries of a root have. */
function subsetRules({ name: subset, rules }: Shard): Omit<CompiledRule, "index">[] {
  return [...Map.groupBy(rules, ({ testText }) => testText).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const { origin, contains } = first;
    return [{ rule: { kind: "subset", subset, resources: unionOf(same), origin }, contains }];
  });
}

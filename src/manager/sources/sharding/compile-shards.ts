// Compiles the shards of a family and the namespaces into a route table. Pure; tested by golden files. The family must have no problems
// (objectLimitProblems). As with VirtualApps, the table contains no selector of namespaces, so all proxies decide alike.
import { CLUSTER_SCOPE, type RouteRule, type RouteTable } from "../../../route/table.ts";
import { computedKeys, type NamespaceTest } from "./namespace-test.ts";
import { objectLimits, unionOf } from "./object-limits.ts";
import type { FamilyShards } from "./shards.ts";

interface CompiledRule {
  readonly index: number;
  readonly subset: string;
  readonly contains: NamespaceTest;
}

/** The desired route table of one family, without fences. */
export function compileShards(
  { shards, shardOf, home }: FamilyShards,
  namespaces: Iterable<{ readonly name: string }>,
): RouteTable {
  const all = shards.flatMap(({ name, rules }) => rules.map((rule) => ({ ...rule, subset: name })));
  const rules: RouteRule[] = [
    { kind: "sharded", resources: unionOf(all), origin: home === undefined ? "spec.limits" : "spec.root.resourceSelector" },
    ...objectLimits(shards),
  ];
  const own = all.map(({ subset, resources, origin, contains }): CompiledRule => {
    return { index: rules.push({ kind: "subset", subset, resources, origin }) - 1, subset, contains };
  });
  const bySubset = Map.groupBy(own, ({ subset }) => subset);
  const classes: number[][] = [];
  const indexOfClass = new Map<string, number>();
  const classOf = new Map<string, number>();
  const put = (name: string, members: readonly CompiledRule[]) => {
    const indices = members.map(({ index }) => index);
    const index = indexOfClass.get(indices.join(",")) ?? classes.push(indices) - 1;
    indexOfClass.set(indices.join(","), index);
    classOf.set(name, index);
  };
  put(CLUSTER_SCOPE, home === undefined ? own : (bySubset.get(home) ?? []));
  for (const { name } of namespaces) {
    const shard = shardOf?.(name);
    // The rules of the other shards of a root do not contain the namespace.
    const candidates = shard === undefined ? own : (bySubset.get(shard) ?? []);
    const keys = computedKeys(name, shard);
    put(
      name,
      candidates.filter(({ contains }) => contains(keys)),
    );
  }
  return { rules, classes, classOf, sharedResources: [], fenced: new Set() };
}

// Counts of a family's route table for its status: gaps and overlaps. Pure. Invariant: the cost grows with
// the classes of the table, not with the namespaces. The cluster scope is not counted.
import { createResourceIndex } from "../../api/resource-index.ts";
import { matchesResource, namespacesOf, type RouteRule, type RouteTable } from "../../route/table.ts";

type SubsetRule = RouteRule & { readonly kind: "subset" };

/** The number of namespaces in which a named resource belongs to no shard. */
export function countGaps(table: RouteTable): number {
  const named = table.rules.filter(({ kind }) => kind === "sharded").flatMap(({ resources }) => resources);
  const pairs = named.flatMap(({ apiGroups, resources }) =>
    apiGroups.flatMap((group) => resources.map((name) => [group, name] as const)),
  );
  return countNamespaces(table, (rules) => {
    return pairs.some(
      ([group, resource]) =>
        !rules.some((rule) => rule.resources.length === 0 || matchesResource(rule.resources, group, resource)),
    );
  });
}

/** The number of namespaces of which two shards contain a common resource. The first shard owns it. */
export function countOverlaps(table: RouteTable): number {
  return countNamespaces(table, (rules) => {
    const earlier = createResourceIndex<SubsetRule>();
    // A config names each resource once, so two entries with a common resource are two shards'.
    return rules.some((rule) => {
      const isOverlap = earlier.firstOverlap(rule.resources) !== undefined;
      earlier.add(rule.resources, rule);
      return isOverlap;
    });
  });
}

function countNamespaces(table: RouteTable, holds: (rules: readonly SubsetRule[]) => boolean): number {
  const counted = table.classes.map((members) =>
    holds(members.flatMap((index) => (table.rules[index]?.kind === "subset" ? [table.rules[index]] : []))),
  );
  return namespacesOf(table).filter((name) => counted[table.classOf.get(name) ?? -1]).length;
}

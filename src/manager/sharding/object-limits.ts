// The terms of object labels in a family's limits. They have to be the same in all shards that name a
// resource, since a table can only limit a resource for all subsets together. Pure. Invariant: the cost is
// linear in the resources of the family.
import { createResourceIndex } from "../../api/resource-match.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import type { ResourceMatch, RouteRule } from "../../route/table.ts";
import type { Shard, ShardRule } from "./shards.ts";

/** More problems than this help no user. */
const MAX_PROBLEMS = 20;

/** The rules that limit objects by their labels, one for each selector. */
export function objectLimits(shards: readonly Shard[]): RouteRule[] {
  return [...rulesBySelector(shards)].flatMap(([text, rules]): RouteRule[] => {
    const [first] = rules;
    if (text === "" || first === undefined) return [];
    return [{ kind: "object-limit", terms: first.terms, resources: unionOf(rules), origin: first.origin }];
  });
}

/** The resources that the rules name, each entry once. */
export function unionOf(rules: readonly Pick<ShardRule, "resources">[]): ResourceMatch[] {
  const all = rules.flatMap(({ resources }) => resources);
  return [
    ...new Map(
      all.map(({ apiGroups, resources }) => [JSON.stringify([apiGroups, resources]), { apiGroups, resources }]),
    ).values(),
  ];
}

/**
 * Entries that name a common resource with different terms of object labels; each problem names two of them.
 */
export function objectLimitProblems(shards: readonly Shard[]): string[] {
  const earlier = createResourceIndex<ShardRule>();
  const problems: string[] = [];
  for (const [text, rules] of rulesBySelector(shards)) {
    for (const rule of rules) {
      const other = earlier.firstOverlap(rule.resources);
      if (other !== undefined) problems.push(problemOf(rule, text, other));
      if (problems.length === MAX_PROBLEMS) return problems;
    }
    for (const rule of rules) earlier.add(rule.resources, rule);
  }
  return problems;
}

function problemOf(rule: ShardRule, text: string, other: ShardRule): string {
  const otherText = textOf(other);
  return (
    `${rule.origin} and ${other.origin} name a common resource and select its objects by different labels ` +
    `(${text || "none"} and ${otherText || "none"}): all shards of a family must select them by the same labels; ` +
    "only the computed keys may differ"
  );
}

/** By the text of their terms, in the order of the shards. */
function rulesBySelector(shards: readonly Shard[]): Map<string, ShardRule[]> {
  return Map.groupBy(
    shards.flatMap(({ rules }) => rules),
    textOf,
  );
}

function textOf({ terms }: ShardRule): string {
  return [...new Set(terms.map((term) => formatTerms([term])))].sort().join(",");
}

// The rules of a family's route. Pure; tested by golden files. The family must have no problems. The rules
// contain no selector of namespaces, so all proxies decide alike. All shards that name a resource must have
// the same terms of object labels, since a table can limit a resource only for all subsets together.
import { createResourceIndex } from "../../api/resource-match.ts";
import { formatTerms } from "../../kube/label-selector.ts";
import { BUCKETS, CLUSTER_SCOPE } from "../../kube/place.ts";
import type { ResourceMatch, RouteRule } from "../../mesh/ownership/table.ts";
import type { RouteSpec } from "../apps/compile/route-spec.ts";
import { computedKeys, type FamilyShards, type NamespaceTest, type Shard, type ShardRule } from "./shards.ts";

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

/** More do not help a user. */
const MAX_PROBLEMS = 20;

export function objectLimits(shards: readonly Shard[]): RouteRule[] {
  return [...rulesBySelector(shards)].flatMap(([text, rules]): RouteRule[] => {
    const [first] = rules;
    if (text === "" || first === undefined) return [];
    return [{ kind: "object-limit", terms: first.terms, resources: unionOf(rules), origin: first.origin }];
  });
}

function unionOf(rules: readonly Pick<ShardRule, "resources">[]): ResourceMatch[] {
  const all = rules.flatMap(({ resources }) => resources);
  return [
    ...new Map(
      all.map(({ apiGroups, resources }) => [JSON.stringify([apiGroups, resources]), { apiGroups, resources }]),
    ).values(),
  ];
}

/** A problem for each pair of entries that name a common resource with different terms of object labels. */
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

function rulesBySelector(shards: readonly Shard[]): Map<string, ShardRule[]> {
  return Map.groupBy(
    shards.flatMap(({ rules }) => rules),
    textOf,
  );
}

function textOf({ terms }: ShardRule): string {
  return [...new Set(terms.map((term) => formatTerms([term])))].sort().join(",");
}

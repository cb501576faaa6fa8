// The rules of a VirtualApp's route. Pure; tested by golden files. The spec must be valid. The rules contain
// no selector of namespaces and no regular expression, so all proxies decide alike. They contain selectors of
// objects, because only the proxy sees the objects.
import { type MatchLimitSelector, namesClusters } from "../../api/match-limit-selector.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { type LabelTerm, matchesSelector, termsOfSelector } from "../../kube/label-selector.ts";
import { CLUSTER_SCOPE } from "../../kube/place.ts";
import type { ResourceMatch, RouteRule } from "../../mesh/ownership/table.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts, Matches, NamespaceFacts, RouteSpec } from "../apps/compile/route-spec.ts";
import { matchesCluster } from "./cluster-owners.ts";

interface NamespaceRule {
  readonly rule: RouteRule;
  contains(namespace: NamespaceFacts, matches: Matches): boolean;
  readonly expression?: string | undefined;
  /** It contains every namespace. */
  readonly isForAll?: boolean;
}

/** Terms about other clusters say nothing about the home cluster. */
export function routeOf(spec: VirtualAppSpec): RouteSpec {
  return { ...routeBy(spec, [...limitRules(spec), ...subsetRules(spec, (match) => !namesClusters(match))]), places: [] };
}

/**
 * The rules inside another cluster. What no rule gives to a subset belongs to the default subset. A rule for all namespaces also gives
 * what is in no namespace, as if the subset owned the whole cluster.
 */
export function clusterRouteOf(spec: VirtualAppSpec, cluster: ClusterFacts, chosen: ChosenClusters): RouteSpec {
  const rules = subsetRules(spec, (match) => namesClusters(match) && isOfTerm(match, cluster, chosen));
  const forAll = rules.flatMap(({ isForAll }, index) => (isForAll ? [index] : []));
  return { ...routeBy(spec, rules), places: [[CLUSTER_SCOPE, forAll]] };
}

function isOfTerm({ clustersFrom, ...match }: MatchLimitSelector, cluster: ClusterFacts, chosen: ChosenClusters): boolean {
  const { clusters, clusterSelector } = match;
  return matchesCluster({ clusters, clusterSelector, decisionKey: clustersFrom?.placementDecision }, cluster, chosen) === true;
}

function routeBy(spec: VirtualAppSpec, rules: readonly NamespaceRule[]): Omit<RouteSpec, "places"> {
  return {
    rules: rules.map(({ rule }) => rule),
    sharedResources: resourcesOf(spec.route?.subsetPublicResources),
    expressions: [...new Set(rules.flatMap(({ expression }) => expression ?? []))],
    membersOf: (namespace, matches) => rules.flatMap(({ contains }, index) => (contains(namespace, matches) ? [index] : [])),
  };
}

function limitRules(spec: VirtualAppSpec): NamespaceRule[] {
  return (spec.route?.globalLimits ?? []).flatMap((limit, index): NamespaceRule[] => {
    const common = { resources: resourcesOf(limit.resources), origin: `spec.route.globalLimits[${index}]` };
    const terms = objectTerms(limit);
    if (terms !== undefined) return [{ rule: { kind: "object-limit", terms, ...common }, contains: inNone }];
    const test = namespaceTest(limit);
    return test === undefined ? [] : [{ rule: { kind: "limit", ...common }, ...test }];
  });
}

function subsetRules(spec: VirtualAppSpec, isMeant: (match: MatchLimitSelector) => boolean): NamespaceRule[] {
  const matches = new Map((spec.route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return (spec.subsets ?? []).flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((ruleName) =>
      (matches.get(ruleName) ?? []).flatMap((match, index): NamespaceRule[] => {
        if (!isMeant(match)) return [];
        const common = { subset, resources: resourcesOf(match.resources), origin: `subRules[${ruleName}].match[${index}]` };
        const [term] = objectTerms(match) ?? [];
        if (term !== undefined) return [{ rule: { kind: "objects", term, ...common }, contains: inNone }];
        const test = namespaceTest(match);
        return test === undefined ? [] : [{ rule: { kind: "subset", ...common }, ...test }];
      }),
    ),
  );
}

// Validation has checked that a subset's selector has one term, and that the rule names resources.
function objectTerms({ objectSelector }: MatchLimitSelector): LabelTerm[] | undefined {
  return objectSelector && termsOfSelector(objectSelector);
}

function inNone(): boolean {
  return false;
}

function namespaceTest(match: MatchLimitSelector): Omit<NamespaceRule, "rule"> | undefined {
  const { namespaceRegex, namespaceSelector } = match;
  if (namespaceRegex !== undefined)
    return { contains: ({ name }, matches) => matches(namespaceRegex, name), expression: namespaceRegex };
  if (namespaceSelector !== undefined) return { contains: ({ labels }) => matchesSelector(namespaceSelector, labels) };
  return namesClusters(match) ? { contains: () => true, isForAll: true } : undefined;
}

function resourcesOf(
  matches: readonly { readonly apiGroups?: readonly string[]; readonly resources?: readonly string[] }[] | undefined,
): ResourceMatch[] {
  return (matches ?? []).map(({ apiGroups = [], resources = [] }) => ({ apiGroups, resources }));
}

// The rules of a VirtualApp's route. Pure; tested by golden files. The spec must be valid. The rules contain
// no selector of namespaces and no regular expression, so all proxies decide alike. They contain selectors of
// objects, because only the proxy sees the objects.
import type { MatchLimitSelector } from "../../api/match-limit-selector.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { type LabelTerm, matchesSelector, termsOfSelector } from "../../kube/label-selector.ts";
import type { ResourceMatch, RouteRule } from "../../mesh/ownership/table.ts";
import type { Matches, NamespaceFacts, RouteSpec } from "../apps/compile/route-spec.ts";

interface NamespaceRule {
  readonly rule: RouteRule;
  contains(namespace: NamespaceFacts, matches: Matches): boolean;
}

export function routeOf(spec: VirtualAppSpec): RouteSpec {
  const rules = [...limitRules(spec), ...subsetRules(spec)];
  return {
    rules: rules.map(({ rule }) => rule),
    sharedResources: resourcesOf(spec.route?.subsetPublicResources),
    places: [],
    expressions: [...new Set(matchesOf(spec).flatMap(({ namespaceRegex }) => namespaceRegex ?? []))],
    membersOf: (namespace, matches) => rules.flatMap(({ contains }, index) => (contains(namespace, matches) ? [index] : [])),
  };
}

function matchesOf({ route, subsets = [] }: VirtualAppSpec): readonly MatchLimitSelector[] {
  const used = new Set(subsets.flatMap(({ routeRules }) => routeRules));
  const named = (route?.subRules ?? []).filter(({ name }) => used.has(name));
  return [...(route?.globalLimits ?? []), ...named.flatMap(({ match }) => match)];
}

function limitRules(spec: VirtualAppSpec): NamespaceRule[] {
  return (spec.route?.globalLimits ?? []).flatMap((limit, index): NamespaceRule[] => {
    const common = { resources: resourcesOf(limit.resources), origin: `spec.route.globalLimits[${index}]` };
    const terms = objectTerms(limit);
    if (terms !== undefined) return [{ rule: { kind: "object-limit", terms, ...common }, contains: inNone }];
    const contains = namespaceTest(limit);
    return contains === undefined ? [] : [{ rule: { kind: "limit", ...common }, contains }];
  });
}

function subsetRules(spec: VirtualAppSpec): NamespaceRule[] {
  const matches = new Map((spec.route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return (spec.subsets ?? []).flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((ruleName) =>
      (matches.get(ruleName) ?? []).flatMap((match, index): NamespaceRule[] => {
        const common = { subset, resources: resourcesOf(match.resources), origin: `subRules[${ruleName}].match[${index}]` };
        const [term] = objectTerms(match) ?? [];
        if (term !== undefined) return [{ rule: { kind: "objects", term, ...common }, contains: inNone }];
        const contains = namespaceTest(match);
        return contains === undefined ? [] : [{ rule: { kind: "subset", ...common }, contains }];
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

function namespaceTest(match: MatchLimitSelector): NamespaceRule["contains"] | undefined {
  const { namespaceRegex, namespaceSelector } = match;
  if (namespaceRegex !== undefined) return ({ name }, matches) => matches(namespaceRegex, name);
  if (namespaceSelector !== undefined) return ({ labels }) => matchesSelector(namespaceSelector, labels);
  return undefined;
}

function resourcesOf(
  matches: readonly { readonly apiGroups?: readonly string[]; readonly resources?: readonly string[] }[] | undefined,
): ResourceMatch[] {
  return (matches ?? []).map(({ apiGroups = [], resources = [] }) => ({ apiGroups, resources }));
}

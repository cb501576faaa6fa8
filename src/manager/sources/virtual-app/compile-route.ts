// Compiles a VirtualApp and the namespaces into a route table. Pure; tested by golden files. The spec must be valid
// (validateVirtualApp). The table contains no selector of namespaces and no regular expression, so all proxies decide alike. It
// contains selectors of objects unchanged, because only the proxy sees the objects.
import { RE2JS } from "re2js";
import type { MatchLimitSelector } from "../../../api/match-limit-selector.ts";
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import { isSetTerm, matchesSelector, type SetTerm, termsOfSelector } from "../../../kube/label-selector.ts";
import type { ResourceMatch, RouteRule, RouteTable } from "../../../route/table.ts";
import type { NamespaceFacts } from "../app.ts";

interface CompiledRule {
  readonly rule: RouteRule;
  contains(namespace: NamespaceFacts): boolean;
}

/** The desired route table of one app, without fences. */
export function compileRoute(spec: VirtualAppSpec, namespaces: Iterable<NamespaceFacts>): RouteTable {
  const rules = [...limitRules(spec), ...subsetRules(spec)];
  const classes: number[][] = [];
  const indexOfClass = new Map<string, number>();
  const classOf = new Map<string, number>();
  for (const namespace of namespaces) {
    const members = rules.flatMap(({ contains }, index) => (contains(namespace) ? [index] : []));
    const key = members.join(",");
    let index = indexOfClass.get(key);
    if (index === undefined) {
      index = classes.push(members) - 1;
      indexOfClass.set(key, index);
    }
    classOf.set(namespace.name, index);
  }
  return {
    rules: rules.map(({ rule }) => rule),
    classes,
    classOf,
    sharedResources: resourcesOf(spec.route?.subsetPublicResources),
    fenced: new Set(),
  };
}

function limitRules(spec: VirtualAppSpec): CompiledRule[] {
  return (spec.route?.globalLimits ?? []).flatMap((limit, index): CompiledRule[] => {
    const common = { resources: resourcesOf(limit.resources), origin: `spec.route.globalLimits[${index}]` };
    const terms = objectTerms(limit);
    if (terms !== undefined) return [{ rule: { kind: "object-limit", terms, ...common }, contains: inNone }];
    const contains = namespaceTest(limit);
    return contains === undefined ? [] : [{ rule: { kind: "limit", ...common }, contains }];
  });
}

function subsetRules(spec: VirtualAppSpec): CompiledRule[] {
  const matches = new Map((spec.route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return (spec.subsets ?? []).flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((ruleName) =>
      (matches.get(ruleName) ?? []).flatMap((match, index): CompiledRule[] => {
        const common = { subset, resources: resourcesOf(match.resources), origin: `subRules[${ruleName}].match[${index}]` };
        const [term] = objectTerms(match) ?? [];
        if (term !== undefined) return [{ rule: { kind: "objects", term, ...common }, contains: inNone }];
        const contains = namespaceTest(match);
        return contains === undefined ? [] : [{ rule: { kind: "subset", ...common }, contains }];
      }),
    ),
  );
}

// The terms of a rule's object selector. Validation has checked that a subset's selector has one term, and that the rule names
// resources.
function objectTerms({ objectSelector }: MatchLimitSelector): SetTerm[] | undefined {
  return objectSelector && termsOfSelector(objectSelector).filter(isSetTerm);
}

// A rule on labels contains no namespace.
function inNone(): boolean {
  return false;
}

function namespaceTest(match: MatchLimitSelector): CompiledRule["contains"] | undefined {
  const { namespaceRegex, namespaceSelector } = match;
  if (namespaceRegex !== undefined) {
    const pattern = RE2JS.compile(namespaceRegex);
    return ({ name }) => pattern.matcher(name).find();
  }
  if (namespaceSelector !== undefined) return ({ labels }) => matchesSelector(namespaceSelector, labels);
  return undefined;
}

function resourcesOf(
  matches: readonly { readonly apiGroups?: readonly string[]; readonly resources?: readonly string[] }[] | undefined,
): ResourceMatch[] {
  return (matches ?? []).map(({ apiGroups = [], resources = [] }) => ({ apiGroups, resources }));
}

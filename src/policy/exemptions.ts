// Exemptions: a rule with the limiter "exempt" (`triggerPolicy: ForceClosed`) takes its requests out of the less
// specific rules of CircuitBreakers, as in KusionStack's mesh. Pure. Invariant: a rule that is as specific as the
// exemption, or more so, still applies; so an exemption for everything exempts from nothing.
import { remember } from "../base/remember.ts";
import { createMatcher, type Matcher } from "./matcher.ts";
import type { LimitRule, RequestMatch, ResourceRule } from "./policy.ts";
import type { PolicyRequest } from "./policy-request.ts";

interface Matched {
  readonly rule: LimitRule;
}

/** @param matched the rules that match the request */
export function withoutExempted<E extends Matched>(matched: readonly E[], request: PolicyRequest): readonly E[] {
  const exempting = matched.filter(({ rule }) => rule.limiter.kind === "exempt" && rule.mode === "Enforce");
  if (exempting.length === 0) return matched;
  const level = Math.max(...exempting.map(({ rule }) => specificityOf(rule.match, request)));
  const isExempted = ({ rule }: E) =>
    rule.origin.kind === "CircuitBreaker" && rule.limiter.kind !== "exempt" && specificityOf(rule.match, request) < level;
  return matched.filter((each) => !isExempted(each));
}

/** Of the parts of a rule that match the request, the most specific one counts. */
function specificityOf(match: RequestMatch, request: PolicyRequest): number {
  return Math.max(...partsOf(match).map((part) => (part.matcher.match(request).length > 0 ? part.specificity : 0)));
}

interface Part {
  readonly matcher: Matcher<{ readonly match: RequestMatch }>;
  readonly specificity: number;
}

const NOTHING: RequestMatch = { resources: [], urls: [], http: [] };

const partsOf = remember((match: RequestMatch): readonly Part[] => {
  const part = (specificity: number, alone: Partial<RequestMatch>): Part => {
    return { specificity, matcher: createMatcher([{ match: { ...NOTHING, ...alone } }]) };
  };
  return [
    ...match.resources.map((rule) => part(namedBy(rule), { resources: [rule] })),
    ...match.urls.map((rule) => part(rule.url.replace(/\*$/, "").length, { urls: [rule] })),
  ];
});

/** How many of group, resource, verb and namespace the rule names, without a wildcard. */
function namedBy({ apiGroups, resources, verbs, namespaces }: ResourceRule): number {
  return [apiGroups, resources, verbs, namespaces].filter((list) => list.every((name) => !name.includes("*"))).length;
}

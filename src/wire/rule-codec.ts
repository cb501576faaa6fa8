// Converts a route rule to a wire message and back. Invariant: an unknown kind of rule, or an unknown term,
// makes the table invalid. The rule is never omitted, because without it a subset could own more than it was
// granted.
import { isLabelOperator, type LabelOperator, type LabelTerm } from "../kube/label-selector.ts";
import type { ResourceMatch, RouteRule } from "../route/table.ts";
import type { LabelTermMessage, RuleMessage } from "./messages.ts";

export function ruleToWire(rule: RouteRule): RuleMessage {
  const { resources, origin } = rule;
  const common = { subset: "", resources, origin, terms: [] };
  switch (rule.kind) {
    case "sharded":
      return { kind: "SHARDED", ...common };
    case "limit":
      return { kind: "LIMIT", ...common };
    case "subset":
      return { kind: "SUBSET", ...common, subset: rule.subset };
    case "object-limit":
      return { kind: "OBJECT_LIMIT", ...common, terms: rule.terms.map(termToWire) };
    case "objects":
      return { kind: "OBJECTS", ...common, subset: rule.subset, terms: [termToWire(rule.term)] };
    case "fence":
      return { kind: rule.because === "moves" ? "FENCE_MOVES" : "FENCE", ...common };
    default:
      return rule satisfies never;
  }
}

/**
 * Decodes and checks a rule.
 * @param resources the decoded resources of the message
 * @param report called with each problem, with its path below the rule. After a problem the result must not
 * be used
 */
export function ruleFromWire(
  message: RuleMessage,
  resources: readonly ResourceMatch[],
  report: (problem: string) => void,
): RouteRule {
  const { kind, subset, origin } = message;
  if ((kind === "SUBSET" || kind === "OBJECTS") && subset === "") report(".subset: missing");
  if (kind === "LIMIT") return { kind: "limit", resources, origin };
  if (kind === "SUBSET") return { kind: "subset", subset, resources, origin };
  if (!KINDS_WITH_RESOURCES.has(kind)) {
    report(`.kind: ${String(kind)} is not known to this proxy`);
    return { kind: "fence", because: "moves", resources, origin };
  }
  if (resources.length === 0) report(".resources: missing");
  if (kind === "SHARDED") return { kind: "sharded", resources, origin };
  if (kind === "FENCE") return { kind: "fence", because: "unreported", resources, origin };
  if (kind === "FENCE_MOVES") return { kind: "fence", because: "moves", resources, origin };
  const terms = termsFromWire(message.terms, report);
  const [term] = terms;
  if (kind === "OBJECT_LIMIT") return { kind: "object-limit", terms, resources, origin };
  if (term === undefined || terms.length > 1) report(`.terms: must be one, are ${terms.length}`);
  return { kind: "objects", subset, term: term ?? NO_TERM, resources, origin };
}

const KINDS_WITH_RESOURCES: ReadonlySet<RuleMessage["kind"]> = new Set([
  "OBJECT_LIMIT",
  "OBJECTS",
  "FENCE",
  "FENCE_MOVES",
  "SHARDED",
]);

const NO_TERM: LabelTerm = { key: "", operator: "exists", values: [] };

function termToWire({ key, operator, values }: LabelTerm): LabelTermMessage {
  return { key, operator, values: [...values] };
}

function termsFromWire(messages: readonly LabelTermMessage[], report: (problem: string) => void): LabelTerm[] {
  return messages.map(({ key, operator, values }, index) => {
    const term = { key, operator: operator as LabelOperator, values: [...values] };
    const needsValues = operator === "in" || operator === "notin";
    if (key === "") report(`.terms[${index}].key: missing`);
    if (!isLabelOperator(operator)) report(`.terms[${index}].operator: ${JSON.stringify(operator)} is not known to this proxy`);
    else if (needsValues !== values.length > 0)
      report(`.terms[${index}].values: ${operator} ${needsValues ? "needs some" : "takes none"}`);
    return term;
  });
}

// The schema of metav1.LabelSelector, with Kubernetes' own checks. Invariant: its type is assignable to the
// one in src/kube/types.ts.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { atomicMap, type CelRule, celRules } from "./extensions.ts";
import { labelKeySchema, labelValueSchema } from "./names.ts";
import { type Finding, fieldAt, fieldsOf, isObject, itemsOf, withRules } from "./rule.ts";

export const MAX_LABELS = 32;
export const MAX_EXPRESSIONS = 16;
const MAX_VALUES = 128;

/** Also the matchLabels of a selector. */
export const labelsSchema = withRules(
  z.record(z.string(), labelValueSchema).meta({ maxProperties: MAX_LABELS }),
  labelCountRule,
  labelKeysRule,
);

const requirementSchema = requirementOf(MAX_VALUES);

/** An object must satisfy all terms. A selector without terms matches everything. */
export const labelSelectorSchema = selectorOf(requirementSchema);

/** A selector with longer lists of values, for lists of namespaces. */
export function longSelector(maxValues: number): typeof labelSelectorSchema {
  return selectorOf(requirementOf(maxValues));
}

function requirementOf(maxValues: number) {
  return withRules(
    z
      .strictObject({
        key: labelKeySchema.describe("Key of the label."),
        operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).describe("Relation of the label to the values."),
        values: optional(z.array(labelValueSchema).max(maxValues)).describe(
          "Values. In and NotIn need at least one value. Exists and DoesNotExist take no values.",
        ),
      })
      .meta(
        celRules({
          rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
          message: "In and NotIn need at least one value, Exists and DoesNotExist take no values",
        }),
      ),
    valuesRule,
  );
}

function selectorOf(requirement: ReturnType<typeof requirementOf>) {
  return z
    .strictObject({
      matchLabels: optional(labelsSchema).describe("Labels that must have exactly these values."),
      matchExpressions: optional(z.array(requirement).max(MAX_EXPRESSIONS)).describe(
        "Requirements on labels. An object must satisfy all of these and have all matchLabels.",
      ),
    })
    .meta(atomicMap());
}

const EMPTY_MESSAGE = "must have at least one term: an empty selector matches everything";

/** `rules` are further CEL rules for the selector. */
export function nonEmptySelector(...rules: readonly CelRule[]): typeof labelSelectorSchema {
  const notEmptyRule = {
    rule: "has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",
    message: EMPTY_MESSAGE,
  };
  return withRules(labelSelectorSchema.meta({ ...atomicMap(), ...celRules(notEmptyRule, ...rules) }), termsRule);
}

export type Labels = Immutable<z.output<typeof labelsSchema>>;
export type LabelSelectorRequirement = Immutable<z.output<typeof requirementSchema>>;
export type LabelSelector = Immutable<z.output<typeof labelSelectorSchema>>;

export function countTerms(selector: unknown): number {
  const labels = fieldsOf(fieldAt(selector, "matchLabels"));
  return Object.keys(labels).length + itemsOf(fieldAt(selector, "matchExpressions")).length;
}

function* termsRule(selector: unknown): Iterable<Finding> {
  if (isObject(selector) && countTerms(selector) === 0) yield { path: [], message: EMPTY_MESSAGE };
}

function* labelCountRule(labels: unknown): Iterable<Finding> {
  if (Object.keys(fieldsOf(labels)).length > MAX_LABELS)
    yield { path: [], message: `must have at most ${MAX_LABELS} entries`, isLast: true };
}

/** zod drops the key `__proto__` silently, which would widen a selector. So the keys are checked here. */
function* labelKeysRule(labels: unknown): Iterable<Finding> {
  for (const key of Object.keys(fieldsOf(labels))) {
    for (const issue of labelKeySchema.safeParse(key).error?.issues ?? []) yield { path: [], value: key, message: issue.message };
  }
}

function* valuesRule(requirement: unknown): Iterable<Finding> {
  const { operator, values } = fieldsOf(requirement);
  const hasValues = itemsOf(values).length > 0;
  if ((operator === "In" || operator === "NotIn") && !hasValues) {
    yield { path: ["values"], message: `required: ${operator} needs at least one value` };
  }
  if ((operator === "Exists" || operator === "DoesNotExist") && hasValues) {
    yield { path: ["values"], message: `must not be set: ${operator} takes no values` };
  }
}

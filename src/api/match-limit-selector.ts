// MatchLimitSelector, the one kind of term in VirtualApp rules: namespaces by labels or by name, or objects by labels.
// Invariant: exactly one of the three; both the CEL rules and the check here hold it.
import { RE2JS } from "re2js";
import { z } from "zod";
import { celRules } from "./extensions.ts";
import type { Immutable } from "./immutable.ts";
import { labelSelectorSchema } from "./label-selector.ts";
import { regexSize } from "./regex-size.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { type Finding, fieldsOf, itemsOf, withRules } from "./rule.ts";

const MAX_REGEX_LENGTH = 512;
/** With its repetitions written out; compiling takes time in proportion, and whoever sends it need not be trusted. */
const MAX_REGEX_SIZE = 10_000;

/** A regular expression in RE2 syntax; found anywhere in the text unless anchored. */
const regexSchema = withRules(
  z
    .string()
    .min(1)
    .max(MAX_REGEX_LENGTH)
    // Evaluating it makes the API server compile it, and refuse the object where that fails.
    .meta(celRules({ rule: "''.matches(self) in [true, false]", message: "must be a regular expression in RE2 syntax" })),
  regexRule,
);

export const matchLimitSelectorSchema = withRules(
  z
    .strictObject({
      namespaceSelector: labelSelectorSchema
        .optional()
        .describe("Namespaces by their labels. An empty selector matches every namespace."),
      objectSelector: labelSelectorSchema
        .optional()
        .describe(
          "Objects of the listed resources by their own labels, in every namespace. Becomes part of the label selector of lists and watches. Where a subset uses it: one term, and no other term may divide these resources by namespaces.",
        ),
      namespaceRegex: regexSchema
        .optional()
        .describe(
          "Namespaces by name: a regular expression in RE2 syntax that may match anywhere in the name, so anchor it with ^ and $.",
        ),
      resources: z
        .array(resourceMatchSchema)
        .max(32)
        .optional()
        .describe("Resources that this term is about; none means all. An objectSelector needs them."),
    })
    .meta(
      celRules(
        {
          rule: "[has(self.namespaceSelector), has(self.objectSelector), has(self.namespaceRegex)].exists_one(x, x)",
          message: "exactly one of namespaceSelector, objectSelector and namespaceRegex must be set",
        },
        {
          rule: "!has(self.objectSelector) || has(self.resources) && self.resources.size() > 0",
          message: "objectSelector needs resources: say which objects it selects",
        },
      ),
    ),
  oneSelectorRule,
  objectResourcesRule,
);

export type MatchLimitSelector = Immutable<z.output<typeof matchLimitSelectorSchema>>;

const SELECTORS = ["namespaceSelector", "objectSelector", "namespaceRegex"] as const;

function* oneSelectorRule(value: unknown): Iterable<Finding> {
  const fields = fieldsOf(value);
  const set = SELECTORS.filter((name) => fields[name] !== undefined);
  if (set.length === 1) return;
  // A misspelt selector is refused as an unknown field; that none is set would be noise beside it.
  if (set.length === 0 && Object.keys(fields).some((name) => name !== "resources")) return;
  const found = set.length === 0 ? "none is set" : `${set.join(" and ")} are set`;
  yield { path: [], message: `exactly one of namespaceSelector, objectSelector and namespaceRegex must be set; ${found}` };
}

function* objectResourcesRule(value: unknown): Iterable<Finding> {
  const { objectSelector, resources } = fieldsOf(value);
  if (objectSelector !== undefined && itemsOf(resources).length === 0) {
    yield { path: ["resources"], message: "required: objectSelector needs resources, to say which objects it selects" };
  }
}

function* regexRule(pattern: unknown): Iterable<Finding> {
  // Too long is another rule's refusal; compiling it would only cost.
  if (typeof pattern !== "string" || pattern.length > MAX_REGEX_LENGTH) return;
  const size = regexSize(pattern);
  if (size > MAX_REGEX_SIZE) {
    const message = `too large: with its repetitions written out it is as large as ${size} characters, of ${MAX_REGEX_SIZE} allowed`;
    return yield { path: [], value: pattern, message };
  }
  try {
    RE2JS.compile(pattern);
  } catch (error) {
    yield {
      path: [],
      value: pattern,
      message: `does not compile as RE2: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

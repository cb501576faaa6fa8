// MatchLimitSelector, a term in the rules of a VirtualApp: namespaces by labels, namespaces by name, or objects by labels. Invariant:
// exactly one of the three is set; the CEL rules and the check here both enforce it. Used by virtual-app.ts.
import { RE2JS } from "re2js";
import { z } from "zod";
import { celRules } from "./extensions.ts";
import type { Immutable } from "./immutable.ts";
import { labelSelectorSchema } from "./label-selector.ts";
import { regexSize } from "./regex-size.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { type Finding, fieldsOf, itemsOf, withRules } from "./rule.ts";

const MAX_REGEX_LENGTH = 512;
/** In characters, with repetitions expanded. The time to compile an expression is proportional, and any user may send one. */
const MAX_REGEX_SIZE = 10_000;

/** A regular expression in RE2 syntax. It matches anywhere in the text unless it is anchored. */
const regexSchema = withRules(
  z
    .string()
    .min(1)
    .max(MAX_REGEX_LENGTH)
    // To evaluate this rule the API server compiles the expression, and refuses the object if that fails.
    .meta(celRules({ rule: "''.matches(self) in [true, false]", message: "must be a regular expression in RE2 syntax" })),
  regexRule,
);

export const matchLimitSelectorSchema = withRules(
  z
    .strictObject({
      namespaceSelector: labelSelectorSchema
        .optional()
        .describe("Matches namespaces by their labels. An empty selector matches every namespace."),
      objectSelector: labelSelectorSchema
        .optional()
        .describe(
          "Matches objects of the listed resources by their own labels, in every namespace. The proxy adds it to the label selector of lists and watches. If a subset uses the rule, the selector must have exactly one term, and no rule of a subset may match these resources by namespace.",
        ),
      namespaceRegex: regexSchema
        .optional()
        .describe(
          "Matches namespaces by name: a regular expression in RE2 syntax. It may match anywhere in the name, so anchor it with ^ and $.",
        ),
      resources: z
        .array(resourceMatchSchema)
        .max(32)
        .optional()
        .describe("Resources that this term applies to. The default is all. Required with objectSelector."),
    })
    .meta(
      celRules(
        {
          rule: "[has(self.namespaceSelector), has(self.objectSelector), has(self.namespaceRegex)].exists_one(x, x)",
          message: "exactly one of namespaceSelector, objectSelector and namespaceRegex must be set",
        },
        {
          rule: "!has(self.objectSelector) || has(self.resources) && self.resources.size() > 0",
          message: "objectSelector needs resources, which list the kinds of the objects",
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
  // A misspelt selector is already refused as an unknown field.
  if (set.length === 0 && Object.keys(fields).some((name) => name !== "resources")) return;
  const found = set.length === 0 ? "none is set" : `${set.join(" and ")} are set`;
  yield { path: [], message: `exactly one of namespaceSelector, objectSelector and namespaceRegex must be set; ${found}` };
}

function* objectResourcesRule(value: unknown): Iterable<Finding> {
  const { objectSelector, resources } = fieldsOf(value);
  if (objectSelector !== undefined && itemsOf(resources).length === 0) {
    yield { path: ["resources"], message: "required: objectSelector needs resources, which list the kinds of the objects" };
  }
}

function* regexRule(pattern: unknown): Iterable<Finding> {
  // The schema refuses a longer text.
  if (typeof pattern !== "string" || pattern.length > MAX_REGEX_LENGTH) return;
  const size = regexSize(pattern);
  if (size > MAX_REGEX_SIZE) {
    const message = `too large: with repetitions expanded it has ${size} characters, of ${MAX_REGEX_SIZE} allowed`;
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

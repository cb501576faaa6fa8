// What a whole VirtualApp may make its validation, and the API server's, look through: each part is bounded by the schema, and here all of
// them together. Pure. Invariant: counting costs in proportion to the spec. The first of the rules in virtual-app-rules.ts.
import { regexSize } from "./regex-size.ts";
import { pairCount } from "./resource-index.ts";
import { type Finding, fieldAt, itemsOf, stringsOf } from "./rule.ts";

/** Of all matches of all subRules together: far more than anybody lists, and looked through in a tenth of a second. */
const MAX_RESOURCE_PAIRS = 32_768;
/** Of all namespaceRegex together, with repetitions written out. */
const MAX_REGEX_SIZE = 65_536;

/** Finds what is too much; then nothing else is looked at. */
export function* boundedWork(spec: unknown): Iterable<Finding> {
  const isLast = true;
  const matches = itemsOf(fieldAt(spec, "route", "subRules")).flatMap((subRule) => itemsOf(fieldAt(subRule, "match")));
  const pairs = sumOf(matches, (match) => pairCount(fieldAt(match, "resources")));
  if (pairs > MAX_RESOURCE_PAIRS) {
    const message = `lists ${pairs} pairs of an API group and a resource in all, of ${MAX_RESOURCE_PAIRS} allowed; "*" stands for all`;
    yield { path: ["route", "subRules"], message, isLast };
  }
  const patterns = stringsOf(
    [...matches, ...itemsOf(fieldAt(spec, "route", "globalLimits"))].map((match) => fieldAt(match, "namespaceRegex")),
  );
  const size = sumOf(patterns, regexSize);
  if (size > MAX_REGEX_SIZE) {
    const message = `every namespaceRegex together, with repetitions written out, is as large as ${size} characters, of ${MAX_REGEX_SIZE} allowed`;
    yield { path: ["route"], message, isLast };
  }
}

function sumOf<T>(items: readonly T[], sizeOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + sizeOf(item), 0);
}

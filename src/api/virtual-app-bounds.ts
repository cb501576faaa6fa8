// Bounds of a whole VirtualApp, so that its validation is fast. The schema bounds each part, and this file bounds all parts together. Pure.
// Invariant: the cost of counting is linear in the spec. Called first by virtual-app-rules.ts.
import { regexSize } from "./regex-size.ts";
import { boundedPairs } from "./resource-index.ts";
import { type Finding, fieldAt, itemsOf, stringsOf } from "./rule.ts";

/** Of all namespaceRegex together, with repetitions expanded. */
const MAX_REGEX_SIZE = 65_536;

/** Finds a spec that is too large; then no other rule runs. */
export function* boundedWork(spec: unknown): Iterable<Finding> {
  const isLast = true;
  const matches = itemsOf(fieldAt(spec, "route", "subRules")).flatMap((subRule) => itemsOf(fieldAt(subRule, "match")));
  yield* boundedPairs(
    matches.map((match) => fieldAt(match, "resources")),
    ["route", "subRules"],
  );
  const patterns = stringsOf(
    [...matches, ...itemsOf(fieldAt(spec, "route", "globalLimits"))].map((match) => fieldAt(match, "namespaceRegex")),
  );
  const size = sumOf(patterns, regexSize);
  if (size > MAX_REGEX_SIZE) {
    const message = `all namespaceRegex together, with repetitions expanded, have ${size} characters, of ${MAX_REGEX_SIZE} allowed`;
    yield { path: ["route"], message, isLast };
  }
}

function sumOf<T>(items: readonly T[], sizeOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + sizeOf(item), 0);
}

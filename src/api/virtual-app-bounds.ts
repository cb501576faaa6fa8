// Bounds of a whole VirtualApp, so that its validation is fast. The schema bounds each part, and this file
// bounds all parts together. Pure. Invariant: the cost of counting is linear in the spec. Called first by
// virtual-app-rules.ts.
import { boundedRegexes } from "./regex.ts";
import { boundedPairs } from "./resource-index.ts";
import { type Finding, fieldAt, itemsOf, stringsOf } from "./rule.ts";

/** Finds a spec that is too large; then no other rule runs. */
export function* boundedWork(spec: unknown): Iterable<Finding> {
  const matches = itemsOf(fieldAt(spec, "route", "subRules")).flatMap((subRule) => itemsOf(fieldAt(subRule, "match")));
  yield* boundedPairs(
    matches.map((match) => fieldAt(match, "resources")),
    ["route", "subRules"],
  );
  const patterns = stringsOf(
    [...matches, ...itemsOf(fieldAt(spec, "route", "globalLimits"))].map((match) => fieldAt(match, "namespaceRegex")),
  );
  yield* boundedRegexes(patterns, ["route"], "namespaceRegex");
}

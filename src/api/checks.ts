// Rules about the fields of one object that the API server and the manager check alike. Invariant: each rule
// is written in CEL and in TypeScript side by side, with one message.
import type { z } from "zod";
import { type CelRule, celRules } from "./extensions.ts";
import { type Finding, fieldsOf, isObject, withRules } from "./rule.ts";

/** One rule. Its `fieldPath` names a field of the object, as `.name`. */
export interface Check extends CelRule {
  /** Whether the fields obey the rule. They may have any type. */
  readonly holds: (fields: Readonly<Record<string, unknown>>) => boolean;
}

/** The schema with these checks. Apply wrappers such as `.optional()` to the result. */
export function withChecks<T extends z.ZodType>(schema: T, ...checks: readonly Check[]): T {
  const cel = checks.map(({ holds: _, ...rule }) => rule);
  return withRules(schema.meta(celRules(...cel)), (value) => broken(checks, value));
}

function* broken(checks: readonly Check[], value: unknown): Iterable<Finding> {
  if (!isObject(value)) return;
  const fields = fieldsOf(value);
  for (const { holds, message, fieldPath } of checks) {
    if (!holds(fields)) yield { path: fieldPath === undefined ? [] : [fieldPath.slice(1)], message };
  }
}

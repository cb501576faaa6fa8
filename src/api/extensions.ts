// The x-kubernetes-* extensions of a CRD's schema, as values for zod's `.meta()`. Invariant: a check is
// written in CEL and in TypeScript side by side, with one message, so that the API server and the manager
// decide alike.
import type { z } from "zod";
import { type Finding, fieldsOf, isObject, withRules } from "./rule.ts";

/**
 * One CEL rule (x-kubernetes-validations): the API server refuses the object with `message` unless `rule`
 * holds.
 */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** The field that the error names, as a path below the value, for example `.name`. */
  readonly fieldPath?: string;
}

/**
 * Metadata that adds CEL rules. All lists, maps and strings that the rules read need bounds (maxItems,
 * maxProperties, maxLength). Otherwise the API server refuses the CRD, because it estimates the cost of the
 * rules too high.
 */
export function celRules(...rules: readonly CelRule[]): Record<string, unknown> {
  return { "x-kubernetes-validations": rules };
}

/**
 * Metadata of a list with a key: the API server refuses duplicates, and server-side apply merges by the key.
 */
export function listMap(key: string): Record<string, unknown> {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] };
}

/** Metadata of an object that server-side apply treats as one field. */
export function atomicMap(): Record<string, unknown> {
  return { "x-kubernetes-map-type": "atomic" };
}

/** A rule about the fields of one object. Its `fieldPath` names a field of the object, as `.name`. */
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

// The x-kubernetes-* extensions of a CRD's schema, for zod's `.meta()`. Invariant: a check is written in CEL
// and in TypeScript side by side, with one message, so that the API server and the manager decide alike.
import type { z } from "zod";
import { type Finding, fieldsOf, isObject, itemsOf, withRules } from "./rule.ts";

/** The API server refuses the object with `message` unless `rule` holds (x-kubernetes-validations). */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** A path below the value, for example `.name`. */
  readonly fieldPath?: string;
}

/** All lists, maps and strings that a rule reads need bounds. Otherwise the API server refuses its cost. */
export function celRules(...rules: readonly CelRule[]): Record<string, unknown> {
  return { "x-kubernetes-validations": rules };
}

/** The API server refuses duplicates in the list, and server-side apply merges it by the key. */
export function listMap(key: string): Record<string, unknown> {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] };
}

/** Server-side apply treats the object as one field. */
export function atomicMap(): Record<string, unknown> {
  return { "x-kubernetes-map-type": "atomic" };
}

/** A rule about the fields of one object, in CEL and in TypeScript. */
export interface Check extends CelRule {
  /** The fields may have any type. */
  readonly holds: (fields: Readonly<Record<string, unknown>>) => boolean;
}

/** At least one of the fields is set. */
export function someField(message: string, ...names: readonly string[]): Check {
  const rule = names.map((name) => `has(self.${name})`).join(" || ");
  return { rule, message, holds: (fields) => names.some((name) => fields[name] !== undefined) };
}

/** At least one of the lists has an item. */
export function someItem(message: string, ...names: readonly string[]): Check {
  const rule = names.map((name) => `has(self.${name}) && self.${name}.size() > 0`).join(" || ");
  return { rule, message, holds: (fields) => names.some((name) => itemsOf(fields[name]).length > 0) };
}

/** Apply wrappers such as `.optional()` to the result. */
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

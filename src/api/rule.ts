// Rules over several fields, kept beside the zod schema that they belong to. zod runs no check on an object with some
// faults and hands others a value with keys taken out; our rules run always, on the value as it came, so that all problems
// show at once. Hence they read through the tolerant readers below and never throw. problems.ts runs them.
import { z } from "zod";

/** One thing that a rule found, at a path below the value that it looked at. */
export interface Finding {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** What was written there, for the message. */
  readonly value?: unknown;
  /** True if nothing else of the value shall be looked at: that would take too long. */
  readonly isLast?: boolean;
}

/** Looks at a value of any shape; called only where there is one. */
export type Rule = (value: unknown) => Iterable<Finding>;

const RULES = z.registry<{ readonly rules: readonly Rule[] }>();

/** The schema with further rules. Call it last: wrappers such as `.optional()` go around it. */
export function withRules<T extends z.ZodType>(schema: T, ...rules: readonly Rule[]): T {
  const copy = schema.clone(schema.def, { parent: true });
  RULES.add(copy, { rules: [...rulesOf(schema), ...rules] });
  return copy;
}

/** The rules of a schema, those of the schema that it was made from included. */
export function rulesOf(schema: z.ZodType): readonly Rule[] {
  return RULES.get(schema)?.rules ?? [];
}

/** True for what JSON calls an object. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; an empty one if it is none. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? { ...value } : {};
}

/** The value as a list; an empty one if it is none. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The strings of a list. */
export function stringsOf(value: unknown): readonly string[] {
  return itemsOf(value).filter((item) => typeof item === "string");
}

/** What stands at a path of field names, or undefined. */
export function fieldAt(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce(
    (inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? Reflect.get(inner, name) : undefined),
    value,
  );
}

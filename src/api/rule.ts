// Rules over several fields, attached to a zod schema. Invariant: rules also run on an invalid value, so that
// all problems are reported together (zod skips checks after some problems). So they use the tolerant readers
// below and never throw.
import { z } from "zod";

/** One problem, at a path below the checked value. */
export interface Finding {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** The value at this path, for the message. */
  readonly value?: unknown;
  /** True if no further rule may run on the value, since that would take too long. */
  readonly isLast?: boolean;
}

/** Checks a value of any shape; not called for undefined. */
export type Rule = (value: unknown) => Iterable<Finding>;

const RULES = z.registry<{ readonly rules: readonly Rule[] }>();

/** The schema with further rules. Apply wrappers such as `.optional()` to the result. */
export function withRules<T extends z.ZodType>(schema: T, ...rules: readonly Rule[]): T {
  const copy = schema.clone(schema.def, { parent: true });
  RULES.add(copy, { rules: [...rulesOf(schema), ...rules] });
  return copy;
}

/** The rules of a schema, including those of the schema that it was made from. */
export function rulesOf(schema: z.ZodType): readonly Rule[] {
  return RULES.get(schema)?.rules ?? [];
}

/** True for a JSON object. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; empty for any other value. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? { ...value } : {};
}

/** The value as a list; empty for any other value. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The strings of a list. */
export function stringsOf(value: unknown): readonly string[] {
  return itemsOf(value).filter((item) => typeof item === "string");
}

/** The value at a path of field names, or undefined. */
export function fieldAt(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce(
    (inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? Reflect.get(inner, name) : undefined),
    value,
  );
}

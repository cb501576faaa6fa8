// Rules over several fields, attached to a zod schema. They run on invalid values too, so that all problems
// are reported together (zod skips checks after some problems). So they use the tolerant readers below.
import { z } from "zod";

export type Path = readonly (string | number)[];

export interface Finding {
  /** The path below the checked value. */
  readonly path: Path;
  readonly message: string;
  readonly value?: unknown;
  /** No further rule may run on the value, since that would take too long. */
  readonly isLast?: boolean;
}

/** Takes a value of any shape, but not undefined. Never throws. */
export type Rule = (value: unknown) => Iterable<Finding>;

const RULES = z.registry<{ readonly rules: readonly Rule[] }>();

/** Apply wrappers such as `.optional()` to the result. */
export function withRules<T extends z.ZodType>(schema: T, ...rules: readonly Rule[]): T {
  const copy = schema.clone(schema.def, { parent: true });
  RULES.add(copy, { rules: [...rulesOf(schema), ...rules] });
  return copy;
}

/** Includes the rules of the schema from which this one was made. */
export function rulesOf(schema: z.ZodType): readonly Rule[] {
  return RULES.get(schema)?.rules ?? [];
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Any other value than an object has no fields. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? { ...value } : {};
}

/** Any other value than a list has no items. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function stringsOf(value: unknown): readonly string[] {
  return itemsOf(value).filter((item) => typeof item === "string");
}

export function fieldAt(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce(
    (inner, name) => (isObject(inner) && Object.hasOwn(inner, name) ? Reflect.get(inner, name) : undefined),
    value,
  );
}

/** A path as Kubernetes writes it: fields after dots, list indices and odd keys in brackets. */
export function formatPath(path: readonly PropertyKey[]): string {
  const parts = path.map((part) => (typeof part === "string" && /^[A-Za-z_]\w*$/.test(part) ? `.${part}` : `[${String(part)}]`));
  return parts.join("").replace(/^\./, "");
}

export function specPath(path: Path): string {
  return formatPath(["spec", ...path]);
}

/** Finds the second use of a name in the list at this path of the spec. */
export function* uniqueNames(spec: unknown, list: readonly string[]): Iterable<Finding> {
  const first = new Map<string, number>();
  for (const [index, item] of itemsOf(fieldAt(spec, ...list)).entries()) {
    const name = fieldAt(item, "name");
    if (typeof name !== "string") continue;
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    else {
      const message = `is already the name of ${specPath([...list, earlier])}`;
      yield { path: [...list, index, "name"], value: name, message };
    }
  }
}

/** Finds each item that an earlier one is equal to. The items are texts or plain objects. */
export function* noDuplicates(list: unknown): Iterable<Finding> {
  const first = new Map<string, number>();
  for (const [index, value] of itemsOf(list).entries()) {
    const earlier = first.get(JSON.stringify(value));
    if (earlier === undefined) first.set(JSON.stringify(value), index);
    else yield { path: [index], value, message: `is already item ${earlier} of the list` };
  }
}

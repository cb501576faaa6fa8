// Server-side apply for the fake client: a field that a manager applied before and now omits is removed, unless another manager
// applied it too. A list is one field, except lists of objects with a `type` (conditions), which are maps by type. Every apply is
// forced. localkube has the complete implementation.

type Json = Readonly<Record<string, unknown>>;

export interface FakeApply {
  /** The object with `applied` merged in. @param key the object and its subresource */
  apply(key: string, manager: string, current: Json, applied: Json): Json;
}

export function createFakeApply(): FakeApply {
  const appliedBy = new Map<string, Map<string, Json>>();
  return {
    apply(key, manager, current, applied) {
      const managers = appliedBy.get(key) ?? new Map<string, Json>();
      appliedBy.set(key, managers);
      const { uid: _uid, resourceVersion: _version, ...metadata } = (applied.metadata ?? {}) as Json;
      const own = { ...applied, metadata };
      const before = managers.get(manager) ?? {};
      managers.set(manager, own);
      const others = [...managers].filter(([name]) => name !== manager).map(([, theirs]) => theirs);
      return merge(remove(current, before, [own, ...others]), own) as Json;
    },
  };
}

function remove(value: unknown, before: unknown, kept: readonly unknown[]): unknown {
  const [fields, gone] = [fieldsOf(value), fieldsOf(before)];
  if (fields === undefined || gone === undefined) return value;
  const left = [...fields].flatMap(([key, child]): [string, unknown][] => {
    const keptHere = kept.map((other) => fieldsOf(other)?.get(key)).filter((other) => other !== undefined);
    if (!gone.has(key)) return [[key, child]];
    return keptHere.length === 0 ? [] : [[key, remove(child, gone.get(key), keptHere)]];
  });
  return build(value, left);
}

function merge(value: unknown, applied: unknown): unknown {
  const [fields, desired] = [fieldsOf(value), fieldsOf(applied)];
  if (fields === undefined || desired === undefined) return applied;
  const all = new Map(fields);
  for (const [key, child] of desired) all.set(key, all.has(key) ? merge(all.get(key), child) : child);
  return build(applied, [...all]);
}

/** The fields of an object, or the items of a list that is a map by `type`. Undefined for a single value. */
function fieldsOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  if (value.length === 0 || !value.every((item) => typeof item?.type === "string")) return undefined;
  return new Map(value.map((item: { readonly type: string }) => [item.type, item]));
}

function build(like: unknown, fields: readonly (readonly [string, unknown])[]): unknown {
  return Array.isArray(like) ? fields.map(([, item]) => item) : Object.fromEntries(fields);
}

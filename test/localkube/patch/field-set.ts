// Sets of fields, as metadata.managedFields records them (FieldsV1). A path is a list of elements "f:name" (field), "k:{...}"
// (list item by key) or "v:..." (list item by value), joined by a byte that JSON text never contains. Pure.
import { asArray, deepEqual, isObject, type JsonObject } from "../model/object.ts";
import type { Schema } from "../model/schema.ts";
import { builtInListKind, type ListKind, schemaListKind } from "./merge-keys.ts";

const SEPARATOR = "\0";

/** Field paths, each joined from its elements. */
export type FieldSet = Set<string>;

/** The place of a value: its field names, and its schema in a custom kind. */
export interface Place {
  readonly names: readonly string[];
  /** Absent for built-in kinds. */
  readonly schema?: Schema | undefined;
  readonly custom: boolean;
}

export function childPlace(place: Place, name: string): Place {
  const schema =
    place.schema?.properties?.[name] ??
    (isObject(place.schema?.additionalProperties) ? (place.schema.additionalProperties as Schema) : undefined);
  // all kinds have the same metadata, so its lists merge as in built-in kinds
  const custom = place.custom && !(place.names.length === 0 && name === "metadata");
  return { names: [...place.names, name], schema, custom };
}

export function itemPlace(place: Place): Place {
  return { ...place, schema: place.schema?.items };
}

export function listKindAt(place: Place): ListKind {
  return place.custom ? schemaListKind(place.schema) : builtInListKind(place.names);
}

export function isAtomicMap(place: Place): boolean {
  return place.schema?.["x-kubernetes-map-type"] === "atomic" || (!place.custom && place.names.at(-1) === "selector");
}

/** The path element of a list item: by key, by value, or undefined in an atomic list. */
export function itemElement(item: unknown, kind: ListKind): string | undefined {
  if (kind.kind === "set") return `v:${JSON.stringify(item)}`;
  if (kind.kind !== "map" || !isObject(item)) return undefined;
  const keys = kind.keys.filter((key) => item[key] !== undefined || key === "protocol").sort();
  return `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key] ?? "TCP"])))}`;
}

export function joinPath(path: string, element: string): string {
  return path === "" ? element : `${path}${SEPARATOR}${element}`;
}

/** All leaves of `value`, and the items of keyed lists. */
export function fieldsOf(value: unknown, place: Place, path = "", into: FieldSet = new Set()): FieldSet {
  if (isObject(value) && !isAtomicMap(place) && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) fieldsOf(inner, childPlace(place, key), joinPath(path, `f:${key}`), into);
    return into;
  }
  const kind = Array.isArray(value) ? listKindAt(place) : undefined;
  if (kind === undefined || kind.kind === "atomic" || asArray(value).length === 0) {
    if (path !== "") into.add(path);
    return into;
  }
  for (const item of asArray(value)) {
    const at = joinPath(path, itemElement(item, kind) ?? "");
    into.add(at);
    if (isObject(item)) fieldsOf(item, itemPlace(place), at, into);
  }
  return into;
}

/** The value at each path of `fieldsOf(value)`; an item of a keyed list is only marked as present. */
export function valuesOf(value: unknown, place: Place, path = "", into = new Map<string, unknown>()): Map<string, unknown> {
  if (isObject(value) && !isAtomicMap(place) && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value)) valuesOf(inner, childPlace(place, key), joinPath(path, `f:${key}`), into);
    return into;
  }
  const kind = Array.isArray(value) ? listKindAt(place) : undefined;
  if (kind === undefined || kind.kind === "atomic" || asArray(value).length === 0)
    return path === "" ? into : into.set(path, value);
  for (const item of asArray(value)) {
    const at = joinPath(path, itemElement(item, kind) ?? "");
    into.set(at, true);
    if (isObject(item)) valuesOf(item, itemPlace(place), at, into);
  }
  return into;
}

/** The fields of `after` that are missing in `before` or have another value there. */
export function changedFields(before: unknown, after: unknown, place: Place): FieldSet {
  const old = valuesOf(before, place);
  return new Set(
    [...valuesOf(after, place)]
      .filter(([path, value]) => !old.has(path) || !deepEqual(old.get(path), value))
      .map(([path]) => path),
  );
}

/** The FieldsV1 tree of a set. */
export function encodeFields(fields: FieldSet): JsonObject {
  const root: JsonObject = {};
  for (const path of [...fields].sort()) {
    let at = root;
    for (const element of path.split(SEPARATOR)) {
      at[element] ??= {};
      at = at[element] as JsonObject;
    }
    // A list item is itself a member of the set, besides its fields.
    if (/^[kv]:/.test(path.split(SEPARATOR).at(-1) ?? "")) at["."] = {};
  }
  return root;
}

/** The set of a FieldsV1 tree. */
export function decodeFields(tree: unknown, path = "", into: FieldSet = new Set()): FieldSet {
  if (!isObject(tree)) return into;
  const keys = Object.keys(tree);
  if (path !== "" && (keys.length === 0 || keys.includes("."))) into.add(path);
  for (const key of keys) if (key !== ".") decodeFields(tree[key], joinPath(path, key), into);
  return into;
}

/** A path in readable form: `.spec.containers[name="app"].image`. */
export function formatPath(path: string): string {
  return path
    .split(SEPARATOR)
    .map((element) => {
      if (element.startsWith("f:")) return `.${element.slice(2)}`;
      if (element.startsWith("v:")) return `[=${element.slice(2)}]`;
      const keys: unknown = JSON.parse(element.slice(2));
      return `[${Object.entries(isObject(keys) ? keys : {})
        .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
        .join(",")}]`;
    })
    .join("");
}

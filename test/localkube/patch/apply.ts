// Server-side apply: merges an applied configuration into an object by the manager of each field. A field that another manager
// holds with another value is a conflict. A field that the manager applied before and now omits is removed, unless another
// manager has it too.
//
// Differences to the API server: fields are compared at their leaves (an object field that became empty stays), and the merge
// keys of built-in kinds come from a table by field name.
import { StatusError } from "../../../src/kube/status.ts";
import type { ManagedFields } from "../model/object.ts";
import { asArray, deepEqual, isObject, type JsonObject, type StoredObject } from "../model/object.ts";
import {
  changedFields,
  childPlace,
  decodeFields,
  encodeFields,
  type FieldSet,
  fieldsOf,
  formatPath,
  isAtomicMap,
  itemElement,
  itemPlace,
  joinPath,
  listKindAt,
  type Place,
  valuesOf,
} from "./field-set.ts";

/** The writer of a change, and its time. */
export interface Writer {
  readonly manager: string;
  readonly apiVersion: string;
  readonly time: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** The part of an object that managers can own: all but the fields that the API server maintains. */
function managedPart(object: JsonObject): JsonObject {
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  const kept = Object.entries({ labels, annotations, finalizers, ownerReferences }).filter(([, value]) => value !== undefined);
  const { apiVersion: _version, kind: _kind, metadata: _metadata, ...rest } = object;
  return kept.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(kept) };
}

/**
 * The current object (or an empty one) with `applied` merged in, and the new managedFields.
 * @throws StatusError Conflict if another manager holds a field and `force` is not set
 */
export function applyConfiguration(
  current: StoredObject | undefined,
  applied: JsonObject,
  root: Place,
  writer: Writer,
  force: boolean,
): { readonly object: JsonObject; readonly managedFields: ManagedFields[] } {
  const entries = current?.metadata.managedFields ?? [];
  const isOwn = (entry: ManagedFields) =>
    entry.operation === "Apply" && entry.manager === writer.manager && (entry.subresource ?? "") === writer.subresource;
  const others = entries.filter((entry) => !isOwn(entry));
  const wanted = managedPart(applied);
  const fields = fieldsOf(wanted, root);
  const conflicts = findConflicts(current === undefined ? {} : managedPart(current), wanted, root, others);
  if (conflicts.length > 0 && !force) throw conflictError(conflicts);

  const taken = new Set(conflicts.map(({ path }) => path));
  const left = others.map((entry) => without(entry, taken));
  const before = entries.filter(isOwn).flatMap((entry) => [...decodeFields(entry.fieldsV1)]);
  const heldByOthers = new Set(left.flatMap((entry) => [...decodeFields(entry.fieldsV1)]));
  const dropped = new Set(before.filter((path) => !fields.has(path) && !heldByOthers.has(path)));
  const base = current === undefined ? {} : removeFields(current, root, dropped, "");
  const object = mergeValue(base, applied, root) as JsonObject;
  return { object, managedFields: [...nonEmpty(left), entryOf(writer, "Apply", fields)] };
}

/** The managedFields after an ordinary write: changed fields belong to the writer, removed fields to no manager. */
export function fieldsAfterUpdate(
  before: JsonObject | undefined,
  after: JsonObject,
  root: Place,
  writer: Writer,
  entries: readonly ManagedFields[],
): ManagedFields[] {
  const oldPart = before === undefined ? {} : managedPart(before);
  const newPart = managedPart(after);
  const changed = changedFields(oldPart, newPart, root);
  const present = fieldsOf(newPart, root);
  const gone = new Set([...fieldsOf(oldPart, root)].filter((path) => !present.has(path)));
  if (changed.size === 0 && gone.size === 0) return [...entries];
  const isOwn = (entry: ManagedFields) =>
    entry.operation === "Update" &&
    entry.manager === writer.manager &&
    (entry.subresource ?? "") === writer.subresource &&
    entry.apiVersion === writer.apiVersion;
  const taken = new Set([...changed, ...gone]);
  const others = entries.filter((entry) => !isOwn(entry)).map((entry) => without(entry, taken));
  const own = entries.filter(isOwn).flatMap((entry) => [...decodeFields(entry.fieldsV1)]);
  const fields = new Set([...own.filter((path) => !gone.has(path)), ...changed]);
  return fields.size === 0 ? nonEmpty(others) : [...nonEmpty(others), entryOf(writer, "Update", fields)];
}

interface FieldConflict {
  readonly path: string;
  readonly owner: ManagedFields;
}

function findConflicts(current: JsonObject, wanted: JsonObject, root: Place, others: readonly ManagedFields[]): FieldConflict[] {
  const now = valuesOf(current, root);
  const differing = [...valuesOf(wanted, root)]
    .filter(([path, value]) => now.has(path) && !deepEqual(now.get(path), value))
    .map(([path]) => path);
  if (differing.length === 0) return [];
  return others.flatMap((owner) => {
    const fields = decodeFields(owner.fieldsV1);
    return differing.filter((path) => fields.has(path)).map((path) => ({ path, owner }));
  });
}

function conflictError(conflicts: readonly FieldConflict[]): StatusError {
  const causes = conflicts.map(({ path, owner }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${JSON.stringify(owner.manager)}${owner.operation === "Update" ? ` using ${owner.apiVersion}` : ""}`,
    field: formatPath(path),
  }));
  const list = causes.map((cause) => `${cause.message}: ${cause.field}`).join(", ");
  const count = causes.length === 1 ? "1 conflict" : `${causes.length} conflicts`;
  return new StatusError("Conflict", `Apply failed with ${count}: ${list}`, { causes });
}

function entryOf(writer: Writer, operation: "Apply" | "Update", fields: FieldSet): ManagedFields {
  return {
    manager: writer.manager,
    operation,
    apiVersion: writer.apiVersion,
    time: writer.time,
    fieldsType: "FieldsV1",
    fieldsV1: encodeFields(fields),
    ...(writer.subresource === "" ? {} : { subresource: writer.subresource }),
  };
}

function without(entry: ManagedFields, paths: ReadonlySet<string>): ManagedFields {
  const fields = decodeFields(entry.fieldsV1);
  const kept = new Set([...fields].filter((path) => !paths.has(path)));
  return kept.size === fields.size ? entry : { ...entry, fieldsV1: encodeFields(kept) };
}

function nonEmpty(entries: readonly ManagedFields[]): ManagedFields[] {
  return entries.filter((entry) => Object.keys(entry.fieldsV1).length > 0);
}

function removeFields(value: JsonObject, place: Place, dropped: ReadonlySet<string>, path: string): JsonObject {
  if (dropped.size === 0) return value;
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const at = joinPath(path, `f:${key}`);
    if (dropped.has(at)) continue;
    const inside = childPlace(place, key);
    if (isObject(inner) && !isAtomicMap(inside)) {
      const kept = removeFields(inner, inside, dropped, at);
      if (Object.keys(kept).length > 0 || Object.keys(inner).length === 0) result[key] = kept;
    } else if (Array.isArray(inner)) {
      const kept = removeItems(inner, inside, dropped, at);
      if (kept.length > 0 || inner.length === 0) result[key] = kept;
    } else result[key] = inner;
  }
  return result;
}

function removeItems(items: readonly unknown[], place: Place, dropped: ReadonlySet<string>, path: string): unknown[] {
  const kind = listKindAt(place);
  if (kind.kind === "atomic") return [...items];
  return items.flatMap((item) => {
    const at = joinPath(path, itemElement(item, kind) ?? "");
    if (dropped.has(at)) return [];
    return [isObject(item) ? removeFields(item, itemPlace(place), dropped, at) : item];
  });
}

function mergeValue(current: unknown, applied: unknown, place: Place): unknown {
  if (isObject(applied) && isObject(current) && !isAtomicMap(place)) {
    const merged: JsonObject = { ...current };
    for (const [key, value] of Object.entries(applied)) {
      if (value === null) delete merged[key];
      else merged[key] = mergeValue(current[key], value, childPlace(place, key));
    }
    return merged;
  }
  if (Array.isArray(applied) && Array.isArray(current)) return mergeItems(current, asArray(applied), place);
  return structuredClone(applied);
}

function mergeItems(current: readonly unknown[], applied: readonly unknown[], place: Place): unknown[] {
  const kind = listKindAt(place);
  if (kind.kind === "atomic") return structuredClone([...applied]);
  const merged = new Map(current.map((item) => [itemElement(item, kind), item]));
  for (const item of applied) {
    const element = itemElement(item, kind);
    merged.set(element, merged.has(element) ? mergeValue(merged.get(element), item, itemPlace(place)) : structuredClone(item));
  }
  return [...merged.values()];
}

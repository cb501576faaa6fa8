// The shape of stored objects, and the operations on JSON trees that all of localkube shares. An object in the store never
// changes again; to change it, copy it.

/** Any JSON object. */
export type JsonObject = { [field: string]: unknown };

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** metav1.ManagedFieldsEntry. */
export interface ManagedFields {
  manager: string;
  operation: "Apply" | "Update";
  apiVersion: string;
  time: string;
  fieldsType: "FieldsV1";
  fieldsV1: JsonObject;
  subresource?: string;
}

/** metav1.ObjectMeta of a stored object. */
export interface Meta {
  name: string;
  generateName?: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFields[];
}

/** A stored object. */
export interface StoredObject extends JsonObject {
  apiVersion: string;
  kind: string;
  metadata: Meta;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value` if it is an object, else a new empty one. */
export function asObject(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function asArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The value at a dotted path of plain field names. */
export function fieldAt(value: unknown, path: string): unknown {
  let at = value;
  for (const field of path.split(".")) at = isObject(at) && Object.hasOwn(at, field) ? at[field] : undefined;
  return at;
}

/** Equality of JSON trees. An undefined field equals an absent one. */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => deepEqual(a[key], b[key]));
}

/** RFC 3339 with seconds, as metav1.Time writes it. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

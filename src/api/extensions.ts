// The x-kubernetes-* extensions of a CRD's schema, as values for zod's `.meta()`. structural-schema.ts copies
// them.

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

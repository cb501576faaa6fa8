// The x-kubernetes-* extensions of a CRD's schema, as values for zod's `.meta()`. The schema converter copies them.

/** One CEL rule (x-kubernetes-validations): the API server refuses the object with `message` unless `rule` holds. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** Path below the value that the message names, for example `.name`. */
  readonly fieldPath?: string;
}

/** Metadata that adds CEL rules. Bounds (maxItems, maxLength) on all that they read keep their estimated cost legal. */
export function celRules(...rules: readonly CelRule[]): Record<string, unknown> {
  return { "x-kubernetes-validations": rules };
}

/** Metadata of a list whose items are told apart by a key: the API server refuses duplicates, and apply merges by it. */
export function listMap(key: string): Record<string, unknown> {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] };
}

/** Metadata of an object that server-side apply owns as one piece. */
export function atomicMap(): Record<string, unknown> {
  return { "x-kubernetes-map-type": "atomic" };
}

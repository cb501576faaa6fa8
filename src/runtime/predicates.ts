// Which changes of a store are worth a reconcile. Pure functions. Invariant: additions and deletions always pass the
// predicates about what changed, since there is nothing to compare.
import type { KubeObject } from "../kube/types.ts";
import { isDeepEqual } from "./deep-equal.ts";
import type { Change } from "./store.ts";

export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

/** Updates that changed the spec or began the deletion: the API server counts both in metadata.generation. */
export const generationChanged: Predicate = (change) =>
  change.type !== "updated" ||
  change.object.metadata.generation !== change.previous.metadata.generation ||
  change.object.metadata.deletionTimestamp !== change.previous.metadata.deletionTimestamp;

/** Updates that changed the labels. */
export const labelsChanged: Predicate = (change) =>
  change.type !== "updated" || !isDeepEqual(change.object.metadata.labels ?? {}, change.previous.metadata.labels ?? {});

/** Updates that changed the annotations. */
export const annotationsChanged: Predicate = (change) =>
  change.type !== "updated" || !isDeepEqual(change.object.metadata.annotations ?? {}, change.previous.metadata.annotations ?? {});

/** Updates after which `read` gives something else: `changed((pod) => pod.status?.phase)`. */
export function changed<T extends KubeObject>(read: (object: T) => unknown): Predicate<T> {
  return (change) => change.type !== "updated" || !isDeepEqual(read(change.object), read(change.previous));
}

/** Passes what at least one passes. */
export function anyOf<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

/** Passes what all pass. */
export function allOf<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.every((predicate) => predicate(change));
}

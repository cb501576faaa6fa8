// Predicates decide which changes of a store lead to a reconcile. Pure. Invariant: additions and deletions
// always pass the predicates that compare two versions. Used by the add.ts of controllers and by
// apps/routes.ts.
import type { KubeObject } from "../kube/types.ts";
import { isDeepEqual } from "./deep-equal.ts";
import type { Change } from "./store.ts";

export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

/**
 * Updates that changed the spec or began the deletion. The API server raises metadata.generation for both.
 */
export const generationChanged: Predicate = (change) =>
  change.type !== "updated" ||
  change.object.metadata.generation !== change.previous.metadata.generation ||
  change.object.metadata.deletionTimestamp !== change.previous.metadata.deletionTimestamp;

/** Updates that changed the labels. */
export const labelsChanged: Predicate = (change) =>
  change.type !== "updated" || !isDeepEqual(change.object.metadata.labels ?? {}, change.previous.metadata.labels ?? {});

/** Updates that changed the result of `read`: `changed((pod) => pod.status?.phase)`. */
export function changed<T extends KubeObject>(read: (object: T) => unknown): Predicate<T> {
  return (change) => change.type !== "updated" || !isDeepEqual(read(change.object), read(change.previous));
}

/** Passes a change that at least one of the predicates passes. */
export function anyOf<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

// What a watch asked for and what was pushed down for it, and whether that still fits the routes. Pure. Used by the watch
// streams and by the layer that makes them.
import { isNamespaces, type ResourceView } from "../../route/snapshot.ts";
import type { Collection } from "../session/resync.ts";

/** What one watch asked for. */
export interface WatchScope {
  readonly collection: Collection;
  /** What the API server was asked to leave out; both empty if nothing was pushed down. */
  readonly pushed: PushedDown;
  /** The watch goes on from an earlier list's resourceVersion. */
  readonly continues: boolean;
}

export interface PushedDown {
  /** The one namespace that the answer can hold. */
  readonly only: string | undefined;
  readonly excluded: readonly string[];
}

/** True if what was pushed down hides something that is the subset's now. */
export function isPushdownStale(view: ResourceView, { only, excluded }: PushedDown): boolean {
  if (excluded.some((namespace) => view.standing(namespace) === "mine")) return true;
  return only !== undefined && (view.whole || view.namespaces().mine.some((namespace) => namespace !== only));
}

/** True if a collection that was all mine is so no more. A namespace that nobody knows any more is deleted, and was mine. */
export function isTakenAway(view: ResourceView, collection: Collection): boolean {
  if (isAllMine(view, collection)) return false;
  return collection.namespace === "" || view.standing(collection.namespace) !== "unknown";
}

/** True if nothing of the collection needs a look: the resource is whole, or its one namespace is the subset's. */
export function isAllMine(view: ResourceView, collection: Collection): boolean {
  if (view.whole) return true;
  const { namespace } = collection;
  return namespace !== "" && !isNamespaces(collection) && view.standing(namespace) === "mine";
}

// What a watch asked for and what was pushed down for it, and whether that still fits the routes. Pure. Used by the watch
// streams and by the layer that makes them.
import { type HidingQuery, isHiddenBy, ownsUnknown, type PlanName } from "../../route/plan-query.ts";
import { isNamespaces, type ResourceView } from "../../route/snapshot.ts";
import type { Collection } from "../relist/resync.ts";

/** What one list or watch asks for. */
export interface CollectionRequest {
  readonly collection: Collection;
  /** The watch goes on from an earlier list's resourceVersion. */
  readonly continues: boolean;
  /** All events come after this version, in order; undefined if the watch sends the whole state first, in any order. */
  readonly version?: bigint | undefined;
}

/** What one list or watch asks for, and what the API server was asked for in its place. */
export interface WatchScope extends CollectionRequest {
  readonly pushed: PushedDown;
  /** What is counted for the metrics; absent for a watch that was let through whole. */
  readonly plan?: PlanName;
  /** To be called once with an object that the API server was asked to leave out: it knows no such parameter. */
  readonly onIgnored?: () => void;
}

/** What the API server was asked to leave out. */
export interface PushedDown extends HidingQuery {
  /** Namespaces that nobody has heard of may be hidden by the ranges. */
  readonly hidesUnknown?: boolean;
  /** Of the objects that are the subset's; absent if none was sent. */
  readonly labelSelector?: string;
}

export const NOTHING_PUSHED: PushedDown = { only: undefined, excluded: [] };

/** True if namespaces are left out. */
export function hidesNamespaces({ only, excluded, ranges }: PushedDown): boolean {
  return only !== undefined || excluded.length > 0 || ranges !== undefined;
}

/**
 * True if what was pushed down hides something that is the subset's now.
 * @param born the namespaces that may be the subset's since it was pushed down. All others that it gains are told otherwise
 */
export function isPushdownStale(view: ResourceView, pushed: PushedDown, born: readonly string[]): boolean {
  const { only, excluded, ranges, labelSelector } = pushed;
  if (labelSelector !== undefined && labelSelector !== view.labelFilter?.labelSelector) return true;
  if (excluded.some((namespace) => view.ownershipOf(namespace) === "own")) return true;
  if (only === undefined && ranges === undefined) return false;
  if (ownsUnknown(view) && (only !== undefined || pushed.hidesUnknown === true)) return true;
  return born.some((namespace) => isHiddenBy(pushed, namespace) && view.ownershipOf(namespace) === "own");
}

/** True if a collection that was all mine is so no more. A namespace that nobody knows any more is deleted, and was mine. */
export function isTakenAway(view: ResourceView, collection: Collection): boolean {
  if (isAllMine(view, collection)) return false;
  return collection.namespace === "" || view.ownershipOf(collection.namespace) !== "unknown";
}

/** True if nothing of the collection needs a look: the resource is whole, or its one namespace is the subset's. */
export function isAllMine(view: ResourceView, collection: Collection): boolean {
  if (view.ownsAll || view.labelFilter !== undefined) return view.ownsAll;
  const { namespace } = collection;
  return namespace !== "" && !isNamespaces(collection) && view.ownershipOf(namespace) === "own";
}

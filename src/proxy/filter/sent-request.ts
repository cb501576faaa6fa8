// What a list or watch asks for, what the API server was asked for in its place, and whether that still fits the routes. Pure. Used by
// the watch streams and by the layers that make them.
import { type HidingQuery, isHiddenBy, ownsUnknown, type PlanName } from "../../route/plan-query.ts";
import { isNamespaces, type ResourceView } from "../../route/snapshot.ts";
import type { Collection } from "../moves/collection.ts";
import type { Known } from "../moves/resource-log.ts";

/** What one list or watch asks for. */
export interface CollectionRequest {
  readonly collection: Collection;
  /** All events come after this version, in order; undefined if the watch sends the whole state first, in any order. */
  readonly version?: bigint | undefined;
}

/** What the API server was asked for. */
export interface SentRequest extends CollectionRequest {
  readonly serverFilter: ServerFilter;
  /** The position of the move log when it was sent. */
  readonly told: number;
  /** From where on the client may still miss the last events of departed namespaces. */
  readonly departed?: Known["departed"];
  /** A label of the metrics; absent for a watch that passes whole. */
  readonly plan?: PlanName;
  /** To be called once with an object that the API server was asked to leave out: it ignores the parameter. */
  readonly onIgnored?: () => void;
}

/** What the API server was asked to leave out. */
export interface ServerFilter extends HidingQuery {
  /** Of the subset's objects; absent if the query has none. */
  readonly labelSelector?: string | undefined;
}

export const NO_SERVER_FILTER: ServerFilter = { only: undefined, excluded: [] };

/** True if namespaces are left out. */
export function hidesNamespaces({ only, excluded, shards }: ServerFilter): boolean {
  return only !== undefined || excluded.length > 0 || shards !== undefined;
}

/** True if the filter hides an object that is the subset's now. */
export function isServerFilterStale(view: ResourceView, filter: ServerFilter): boolean {
  const { only, excluded, shards, labelSelector } = filter;
  if (labelSelector !== undefined && labelSelector !== view.labelFilter?.labelSelector) return true;
  if (excluded.some((namespace) => view.ownershipOf(namespace) === "own")) return true;
  if (only === undefined && shards === undefined) return false;
  if (ownsUnknown(view) && (only !== undefined || shards?.hidesUnknown === true)) return true;
  return view.namespaces().own.some((namespace) => isHiddenBy(filter, namespace));
}

/** True if no object of the collection needs a look: the subset owns the resource, or its one namespace. */
export function isAllOwned(view: ResourceView, collection: Collection): boolean {
  if (view.ownsAll || view.labelFilter !== undefined) return view.ownsAll;
  const { namespace } = collection;
  return namespace !== "" && !isNamespaces(collection) && view.ownershipOf(namespace) === "own";
}

// What a list or watch asks for, what the API server was asked for in its place, and whether that still fits
// the routes.

import type { Collection, Known } from "../../mesh/moves/known.ts";
import { mayHide } from "../../mesh/ownership/hidden-objects.ts";
import type { ListSize } from "../../mesh/ownership/plan-lists.ts";
import { type HidingQuery, mayHideUnknown, type PlanName } from "../../mesh/ownership/plan-query.ts";
import { isNamespaces, type ResourceView } from "../../mesh/ownership/snapshot.ts";

export interface CollectionRequest {
  readonly collection: Collection;
  /** All events come after this version, in order. Undefined if the watch sends the whole state first. */
  readonly version?: bigint | undefined;
}

export interface SentRequest extends CollectionRequest {
  readonly serverFilter: HidingQuery;
  /** The position of the move log when it was sent. */
  readonly told: number;
  /** The version and position after which the client may miss last events of departed namespaces. */
  readonly departed?: Known["departed"];
  /** A label of the metrics; absent for a watch that passes whole. */
  readonly plan?: PlanName;
  /** Called once if the API server sends an object that it was asked to leave out. */
  readonly onIgnored?: () => void;
  /** Called once with the size of the API server's answer, when the list is over. */
  readonly onRead?: ((size: ListSize) => void) | undefined;
}

export const NO_SERVER_FILTER: HidingQuery = { only: undefined, excluded: [] };

export function hidesNamespaces(query: HidingQuery): boolean {
  return query.excluded.length > 0 || mayHideUnknown(query);
}

/** True if the subset owns all objects of the collection: the resource, or its one namespace. */
export function isAllOwned(view: ResourceView, collection: Collection): boolean {
  if (view.ownsAll || view.labelFilter !== undefined || mayHide(view.hidden, collection)) return view.ownsAll;
  const { namespace } = collection;
  return namespace !== "" && !isNamespaces(collection) && view.ownershipOf(namespace) === "own";
}

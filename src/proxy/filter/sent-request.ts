// What a list or watch asks for, what the API server was asked for in its place, and whether that still fits
// the routes.
import type { ListSize } from "../../route/plan-lists.ts";
import { type HidingQuery, mayHideUnknown, type PlanName } from "../../route/plan-query.ts";
import { isNamespaces, type ResourceView } from "../../route/snapshot.ts";
import type { Collection, Known } from "../moves/known.ts";

export interface CollectionRequest {
  readonly collection: Collection;
  /** All events come after this version, in order. Undefined if the watch sends the whole state first. */
  readonly version?: bigint | undefined;
}

export interface SentRequest extends CollectionRequest {
  /** What the API server was asked to leave out. */
  readonly serverFilter: HidingQuery;
  /** The position of the move log when it was sent. */
  readonly told: number;
  /** From where on the client may still miss the last events of departed namespaces. */
  readonly departed?: Known["departed"];
  /** A label of the metrics; absent for a watch that passes whole. */
  readonly plan?: PlanName;
  /** To be called once if an object comes that was asked to be left out: the server ignores the parameter. */
  readonly onIgnored?: () => void;
  /** To be called once with what the API server sent, when the list is over. */
  readonly onRead?: ((size: ListSize) => void) | undefined;
}

export const NO_SERVER_FILTER: HidingQuery = { only: undefined, excluded: [] };

export function hidesNamespaces(query: HidingQuery): boolean {
  return query.excluded.length > 0 || mayHideUnknown(query);
}

/** True if no object of the collection needs a look: the subset owns the resource, or its one namespace. */
export function isAllOwned(view: ResourceView, collection: Collection): boolean {
  if (view.ownsAll || view.labelFilter !== undefined) return view.ownsAll;
  const { namespace } = collection;
  return namespace !== "" && !isNamespaces(collection) && view.ownershipOf(namespace) === "own";
}

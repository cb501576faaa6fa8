// Decides about one watch event by the owners of its objects. Invariant: an event is shown only if the subset
// owns every object in it (every row of a Table); an event without a readable object is dropped.
import type { WatchFrame } from "../../kube/codec/codec.ts";
import { hidingCluster } from "../../mesh/ownership/hidden-objects.ts";
import { governingPlace, hasOwnLabels, type Ownership, type ResourceView } from "../../mesh/ownership/snapshot.ts";

type EventAction =
  | { readonly kind: "show" }
  | { readonly kind: "drop" }
  /** Not shown. The client may know an object that has left the subset, so it must list again. */
  | { readonly kind: "relist" }
  /** A Table of which only the subset's rows may be shown; there may be none. */
  | { readonly kind: "show-part" }
  /** The owners of these namespaces are unknown. */
  | { readonly kind: "hold"; readonly namespaces: readonly string[] };

interface EventDecision {
  readonly action: EventAction;
  /** Unknown namespaces of objects that are not shown. The subset may turn out to own them. */
  readonly leftOut: readonly string[];
}

/**
 * @param givenUp true for an unknown namespace after the wait for its owner
 * @param isFirst a first Table says what the columns are, so it is shown even without rows
 */
export function decideEvent(
  view: ResourceView,
  event: WatchFrame,
  givenUp: (namespace: string) => boolean,
  isFirst: boolean,
): EventDecision {
  const { objects, unreadable, isTable } = event;
  let own = 0;
  let hasLeft = false;
  const unknown: string[] = [];
  const leftOut: string[] = [];
  for (const object of objects) {
    if (hidingCluster(view.hidden, object) !== undefined) continue;
    const namespace = governingPlace(view.group, view.resource, object);
    const ownership: Ownership = view.ownershipOf(namespace);
    const hasOurLabels = hasOwnLabels(view, object.labels);
    if (ownership === "own" && hasOurLabels) own++;
    // The API server sends DELETED for an object that leaves the selector, unless it ignores selectors.
    else if (ownership === "own") hasLeft ||= event.type === "MODIFIED";
    else if (ownership === "unknown" && givenUp(namespace)) leftOut.push(namespace);
    else if (ownership === "unknown" && hasOurLabels) unknown.push(namespace);
  }
  if (unknown.length > 0) return { action: { kind: "hold", namespaces: unknown }, leftOut };
  if (hasLeft) return { action: { kind: "relist" }, leftOut };
  const isWhole = own === objects.length && unreadable === 0;
  const isEmpty = own === 0 && !(isTable && isFirst);
  if (isEmpty || !(isWhole || isTable)) return { action: { kind: "drop" }, leftOut };
  return { action: { kind: isWhole ? "show" : "show-part" }, leftOut };
}

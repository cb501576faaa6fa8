// What to do with one watch event, by whose the objects in it are. Pure. Invariant: an event is shown only if every object
// in it (every row of a Table) is the subset's; what carries no readable object is dropped. Called by the watch stream.
//
// Where labels decide, the API server was asked for our own and says DELETED, with the last state that was ours, when an object
// leaves them. A MODIFIED with foreign labels shows that it was not asked, or did not heed it: the object may have been shown,
// nobody here knows, and only a new list takes it from the client.
import type { WatchFrame } from "../../kube/codec/watch-frames.ts";
import { governingNamespace, hasOwnLabels, type Ownership, type ResourceView } from "../../route/snapshot.ts";

export type Verdict =
  | { readonly kind: "show" }
  | { readonly kind: "drop" }
  /** Not to be shown, and what has been shown may be out of date: the client must list again. */
  | { readonly kind: "relist" }
  /** A Table of which only the rows that are mine may be shown; there may be none. */
  | { readonly kind: "show-part" }
  /** Nobody has said yet who owns these namespaces. */
  | { readonly kind: "hold"; readonly namespaces: readonly string[] };

export interface Judgement {
  readonly verdict: Verdict;
  /** Namespaces of objects that are not shown now and may be the subset's later. */
  readonly leftOut: readonly string[];
}

/**
 * Judges an event.
 * @param givenUp true for an unknown namespace that is not waited for any more
 * @param isFirst the watch's first event: if it is a Table, it alone says what the columns are, and is shown without rows
 */
export function judgeEvent(
  view: ResourceView,
  event: WatchFrame,
  givenUp: (namespace: string) => boolean,
  isFirst: boolean,
): Judgement {
  const { objects, unreadable, isTable } = event;
  let mine = 0;
  let hasLeft = false;
  const unknown: string[] = [];
  const leftOut: string[] = [];
  for (const object of objects) {
    const namespace = governingNamespace(view.group, view.resource, object);
    const standing: Ownership = view.ownershipOf(namespace);
    const hasOurLabels = hasOwnLabels(view, object.labels);
    if (standing === "own" && hasOurLabels) mine++;
    else if (standing === "own") hasLeft ||= event.type === "MODIFIED";
    else if (standing === "moving" || (standing === "unknown" && givenUp(namespace))) leftOut.push(namespace);
    else if (standing === "unknown" && hasOurLabels) unknown.push(namespace);
  }
  if (unknown.length > 0) return { verdict: { kind: "hold", namespaces: unknown }, leftOut };
  if (hasLeft) return { verdict: { kind: "relist" }, leftOut };
  const isWhole = mine === objects.length && unreadable === 0;
  const isEmpty = mine === 0 && !(isTable && isFirst);
  if (isEmpty || !(isWhole || isTable)) return { verdict: { kind: "drop" }, leftOut };
  return { verdict: { kind: isWhole ? "show" : "show-part" }, leftOut };
}

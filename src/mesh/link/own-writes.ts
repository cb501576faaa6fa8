// What a pod retains for a moment of the places that it loses in place: those that it has just written to. Some
// clients wait until their watch shows their own last write (docs/decisions/0042). Pure. Invariant: retained
// places are readable and not writable, so no handover waits for them. Resources that move as a whole are not retained.
import { CLUSTER_SCOPE, isBucket } from "../../kube/place.ts";
import { retainedBetween } from "../handover/retained.ts";
import type { Snapshot } from "../ownership/snapshot.ts";

/** A write that ended longer ago than this, in milliseconds, has been shown. Longer than a watch may take to renew itself (5 s). */
export const JUST_WRITTEN_MS = 6_000;

/** The event of a write comes within this time, in milliseconds, after the last write to a lost place has ended. */
export const OWN_WRITES_MS = 1_000;

/**
 * The next routes, with the written places that the pod was shown until now and that they take away; `next` itself if there are none.
 * @param shown what clients are shown now
 */
export function retainingWritten(shown: Snapshot | undefined, next: Snapshot, written: ReadonlySet<string>): Snapshot {
  if (shown === undefined || written.size === 0) return next;
  const { retained = [] } = next.table;
  const isWritten = (place: string) => written.has(place) || (place === CLUSTER_SCOPE && [...written].some(isBucket));
  const isKept = (place: string) => isWritten(place) && !retained.some(({ namespaces }) => namespaces.has(place));
  const kept = retainedBetween(shown, next).flatMap(({ rules, namespaces }) => {
    const places = new Set([...namespaces].filter(isKept));
    return places.size === 0 ? [] : [{ rules, namespaces: places }];
  });
  return kept.length === 0 ? next : { ...next, table: { ...next.table, retained: [...retained, ...kept] } };
}

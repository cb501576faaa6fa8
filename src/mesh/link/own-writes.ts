// What a pod retains for a moment of the places that it loses in place: all of them, if it has just written to one.
// Some clients wait until their watch shows their own last write (docs/decisions/0042). Pure. Invariant: retained
// places are readable and not writable, so no handover waits for them. Resources that move as a whole are not retained.
import { isInClusterScope } from "../../kube/place.ts";
import { retainedBetween } from "../handover/retained.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { MomentaryClass, RetainedClass } from "../ownership/table.ts";

/** A write that ended longer ago than this, in milliseconds, has been shown. Longer than a watch may take to renew itself (5 s). */
export const JUST_WRITTEN_MS = 6_000;

/** The event of a write comes within this time, in milliseconds, after the writes to lost places have ended. */
export const OWN_WRITES_MS = 1_000;

/** Nothing is retained for longer than this, in milliseconds, whatever comes meanwhile. */
export const LONGEST_RETAINED_MS = 6_000;

export interface Retaining {
  /** The routes in force, with what the pod retains. */
  readonly routes: Snapshot;
  /** On the monotonic clock: nothing moves it later. */
  readonly endMs: number;
  /** The writes to the lost places are over, and the shorter wait has begun. */
  readonly isDrained: boolean;
}

/**
 * What the pod retains under the routes of an update. It begins with a loss of what was just written, and other updates do
 * not prolong it.
 */
export function retainedUnder(
  { inForce, retaining }: { readonly inForce: Snapshot | undefined; readonly retaining: Retaining | undefined },
  { routes, written }: { readonly routes: Snapshot; readonly written: ReadonlySet<string> },
  nowMs: number,
): Retaining | undefined {
  if (inForce === undefined) return undefined;
  const before = retaining !== undefined && nowMs < retaining.endMs ? retaining : undefined;
  if (before === undefined && written.size === 0) return undefined;
  const lostNow = lostPlaces(inForce, routes);
  const losesNow = hasWritten(lostNow, written);
  if (before === undefined && !losesNow) return undefined;
  const lost = before === undefined ? lostNow : lostPlaces(before.routes, routes);
  if (lost.length === 0) return undefined;
  const own = lost.map((each): MomentaryClass => ({ ...each, untilShown: true }));
  const table = { ...routes.table, retained: [...(routes.table.retained ?? []), ...own] };
  const endMs = before?.endMs ?? nowMs + LONGEST_RETAINED_MS;
  return { routes: { ...routes, table }, endMs, isDrained: before?.isDrained === true && !losesNow };
}

/** The cluster scope counts as one place. */
function hasWritten(lost: readonly RetainedClass[], written: ReadonlySet<string>): boolean {
  const wroteInScope = [...written].some(isInClusterScope);
  const isWritten = (place: string) => (isInClusterScope(place) ? wroteInScope : written.has(place));
  return lost.some(({ namespaces }) => [...namespaces].some(isWritten));
}

/** What clients are shown and the next routes take away, without what the manager's routes retain. */
function lostPlaces(shown: Snapshot, next: Snapshot): readonly RetainedClass[] {
  const { retained = [] } = next.table;
  return retainedBetween(shown, next).flatMap(({ rules, namespaces }) => {
    const places = [...namespaces].filter((place) => !retained.some((each) => each.namespaces.has(place)));
    return places.length === 0 ? [] : [{ rules, namespaces: new Set(places) }];
  });
}

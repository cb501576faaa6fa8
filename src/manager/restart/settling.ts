// How long the need of a restart has to last before the first pod of a roll is evicted. Pure. A namespace that moves to and fro, or is created
// first and labelled later, restarts no pod at once. Each repeated roll of a subset waits longer, so that no roll repeats without end.
import type { RestartRecord } from "./restart-record.ts";

// Whoever moves namespaces on purpose waits for so long once; a label that follows an object's birth comes sooner.
export const SETTLE_MS = 20_000;
// Below the time after which Ready is False by a wait (STALLED_AFTER_MS).
const MAX_SETTLE_MS = 240_000;
/** A restart is a recent one for this time. */
export const RECENT_MS = 1_800_000;

export interface Roll {
  readonly previous: RestartRecord | undefined;
  /** The restart that the record speaks of is over with this step. */
  readonly isFinished: boolean;
  /** The subset of the next pod, and its pods. */
  readonly subset: string;
  readonly size: number;
  /** Restarts of its pods lately. */
  readonly recent: number;
}

/** The time that the need has to last; 0 within a roll that has begun. */
export function settleMs(baseMs: number, { previous, isFinished, subset, size, recent }: Roll): number {
  const rolls = Math.floor(recent / Math.max(1, size));
  const isOver = recent > 0 && recent % Math.max(1, size) === 0;
  const begins = isFinished ? isOver : previous === undefined || !isGoingOn(previous, subset);
  return begins ? Math.min(baseMs * 2 ** Math.min(rolls, 30), Math.max(baseMs, MAX_SETTLE_MS)) : 0;
}

// What was asked for and is void was undone: what follows is another need. After a pause it has to last again as well: the undo may
// come after the pause's end, by another watch.
function isGoingOn({ subset: before, reason, expected }: RestartRecord, subset: string): boolean {
  return expected === undefined && reason !== "Settling" && reason !== "Paused" && before === subset;
}

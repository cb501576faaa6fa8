// Computes how long the need for a restart must last before the first pod of a roll is evicted. The wait
// prevents restarts for a namespace that moves back and forth, or that gets its labels after its creation.
// Each repeated roll of a subset waits longer. Pure. Called by restart-plan.ts.
import type { RestartRecord } from "./restart-record.ts";

// A user who moves namespaces on purpose waits this long once. A label that a controller adds after the
// creation comes sooner.
export const SETTLE_MS = 20_000;
// Less than STALLED_AFTER_MS, the time after which a wait sets Ready to False.
const MAX_SETTLE_MS = 240_000;
/** For this time a restart counts as recent. */
export const RECENT_MS = 1_800_000;

export interface Roll {
  readonly previous: RestartRecord | undefined;
  /** The restart in the record has ended before this step. */
  readonly isFinished: boolean;
  /** The subset of the next pod. */
  readonly subset: string;
  /** The number of pods in the subset. */
  readonly size: number;
  /** The number of recent restarts in the subset. */
  readonly recent: number;
}

/** How long the need must last, in milliseconds; 0 during a roll. */
export function settleMs(baseMs: number, { previous, isFinished, subset, size, recent }: Roll): number {
  const rolls = Math.floor(recent / Math.max(1, size));
  const isOver = recent > 0 && recent % Math.max(1, size) === 0;
  const begins = isFinished ? isOver : previous === undefined || !isGoingOn(previous, subset);
  return begins ? Math.min(baseMs * 2 ** Math.min(rolls, 30), Math.max(baseMs, MAX_SETTLE_MS)) : 0;
}

// If an eviction was requested and is no longer needed, the edit was undone, and the present need is a new
// one. After a pause the need must also last again: an undo may arrive after the end of the pause, by another
// watch.
function isGoingOn({ subset: before, reason, expected }: RestartRecord, subset: string): boolean {
  return expected === undefined && reason !== "Settling" && reason !== "Paused" && before === subset;
}

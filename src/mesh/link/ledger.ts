// The numbers of a proxy's streams, by which a manager recognizes a late registration, and the promised epoch,
// both over restarts. Pure. Invariants: a later stream has a higher number, even after the clock was set back,
// as long as the disk takes a few bytes; the disk never names a lower epoch than was promised.

export interface Entry {
  /** Ahead of the numbers in use, so that a waiting proxy does not write the file with every attempt. */
  readonly bound: number;
  /** No leader of a lower epoch is followed. 0 if nothing was promised. */
  readonly epoch: number;
}

export interface Ledger extends Entry {
  readonly lastNumber: number;
  /** The oldest entry that may be on the disk; undefined if the disk may have none. */
  readonly onDisk: Entry | undefined;
  /** The disk has `onDisk` and nothing else. */
  readonly isStored: boolean;
  /** An earlier process may have served: it has left a file, even if that is empty or cannot be read. */
  readonly hasPromised: boolean;
}

export const NEW_LEDGER: Ledger = {
  bound: 0,
  epoch: 0,
  lastNumber: 0,
  onDisk: undefined,
  isStored: false,
  hasPromised: false,
};

// How far the stored bound is ahead. Numbers follow the wall clock, so if the file is lost, the next number is
// too low by at most this for each earlier restart.
const RESERVED = 10_000;

/** @param found "lost": there is a file that cannot be read; undefined: there is none */
export function foundOnDisk(found: Entry | "lost" | undefined, now: number): Ledger {
  const hasPromised = found !== undefined;
  if (found === undefined || found === "lost") return { ...NEW_LEDGER, hasPromised };
  // A disk that does not take the new bound may not have taken the last promise.
  return reserved({ ...NEW_LEDGER, ...found, lastNumber: found.bound, onDisk: found, hasPromised }, now);
}

/** With the number of the next stream as `lastNumber`. The number may be used once it was tried to store the bound. */
export function withNextNumber(promises: Ledger, now: number): Ledger {
  const lastNumber = Math.max(promises.lastNumber + 1, now);
  const next = { ...promises, lastNumber };
  return lastNumber > promises.bound ? reserved(next, now) : next;
}

function reserved(promises: Ledger, now: number): Ledger {
  return { ...promises, bound: Math.max(promises.lastNumber, now) + RESERVED };
}

/**
 * Undefined if a newer leader was promised already. The promise may be given once a save is over, also one that has
 * failed: this process keeps it in its memory, and the disk has no older promise by then (`onFullDisk`). The next
 * process finds that nothing is known, and waits until no older leader can still believe that it leads.
 */
export function withPromise(promises: Ledger, epoch: number): Ledger | undefined {
  return epoch < promises.epoch ? undefined : { ...promises, epoch };
}

export interface EntryToSave {
  readonly entry: Entry;
  /** What to leave on a disk that takes no new content. "empty": an older promise must not stay, or the next process would follow its leader. */
  readonly onFullDisk: "empty" | "keep";
}

/** What the disk lacks; undefined if it lacks nothing. */
export function toSave({ bound, epoch, onDisk, isStored }: Ledger): EntryToSave | undefined {
  if (isStored && onDisk?.bound === bound && onDisk.epoch === epoch) return undefined;
  return { entry: { bound, epoch }, onFullDisk: isOlder(onDisk, epoch) ? "empty" : "keep" };
}

/** @param outcome refused: the disk has what `onFullDisk` says; unknown: the old content, the new one, or nothing */
export function afterSave(promises: Ledger, entry: Entry, outcome: "stored" | "refused" | "unknown"): Ledger {
  if (outcome === "stored") return { ...promises, onDisk: entry, isStored: true };
  const isEmpty = outcome === "refused" && isOlder(promises.onDisk, entry.epoch);
  return { ...promises, onDisk: isEmpty ? undefined : promises.onDisk, isStored: false };
}

function isOlder(onDisk: Entry | undefined, epoch: number): boolean {
  return onDisk === undefined || onDisk.epoch < epoch;
}

// The names of the existing namespaces, as an index that the tables of registrations share. Invariant: an
// index is replaced rarely, since each table keeps the one that it was read with. Used by
// registration-tables.ts.
import type { Clock } from "../../base/clock.ts";
import { createNameIndex, type NameIndex } from "./compact-classes.ts";

/** Names that an index lacks cost a table little, so few new namespaces are no reason for a new one. */
const MAX_DIFFERENCE = 256;
const MAX_AGE_MS = 600_000;
/** How often the names are listed. */
const LOOK_MS = 1_000;

/** The index; undefined while no names are known. */
export function createKnownNames(list: () => readonly string[], clock: Clock): () => NameIndex | undefined {
  let index: NameIndex | undefined;
  let madeMs = 0;
  let lookedMs = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (index !== undefined && nowMs - lookedMs < LOOK_MS) return index;
    lookedMs = nowMs;
    const names = list();
    if (names.length === 0) return undefined; // not listed yet
    const isNear = index !== undefined && Math.abs(index.names.length - names.length) <= MAX_DIFFERENCE;
    if (index !== undefined && isNear && nowMs - madeMs < MAX_AGE_MS) return index;
    madeMs = nowMs;
    index = createNameIndex(names);
    return index;
  };
}

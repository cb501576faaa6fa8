// Remembers how large a list over all namespaces was when it was last seen, so that small lists need no
// measuring. Invariant: bounded, and each entry is forgotten after some minutes. Called by by-namespace.ts.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import type { ListSize } from "../../../route/plan-lists.ts";

export interface ListSizes {
  of(key: string): ListSize | undefined;
  note(key: string, size: ListSize): void;
}

const KEPT_MS = 10 * 60_000;
/** Clients choose selectors freely. */
const MAX_KEYS = 1_000;

export function createListSizes(clock: Pick<Clock, "monotonicMs">): ListSizes {
  const known = new BoundedMap<string, { readonly size: ListSize; readonly atMs: number }>(MAX_KEYS);
  return {
    of(key) {
      const entry = known.get(key);
      return entry === undefined || clock.monotonicMs() - entry.atMs > KEPT_MS ? undefined : entry.size;
    },
    note: (key, size) => void known.set(key, { size, atMs: clock.monotonicMs() }),
  };
}

// Delays the end of watches whose objects leave the subset by their labels, where the API server does not filter by labels: every such
// event would cost a list. Invariant: the client always lists again, but less often each time. Called by the watch stream.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import type { Collection } from "../moves/collection.ts";

/** Milliseconds after which one doubtful event may end a watch of the collection. Each call counts as one such end. */
export type RelistPace = (collection: Collection) => number;

const FIRST_MS = 1_000;
/** The longest time that a client keeps an object that has left the subset. */
const LONGEST_MS = 60_000;
/** Clients can invent resources. */
const MAX_COLLECTIONS = 1_000;

export function createRelistPace(clock: Clock): RelistPace {
  const known = new BoundedMap<string, { readonly dueMs: number; readonly intervalMs: number }>(MAX_COLLECTIONS);
  return ({ group, resource, namespace }) => {
    const key = `${group}/${resource}/${namespace}`;
    const now = clock.monotonicMs();
    const last = known.get(key);
    // After an equally long rest the delay starts again.
    const isRested = last === undefined || now - last.dueMs >= 2 * last.intervalMs;
    const dueMs = isRested ? now : Math.max(now, last.dueMs + last.intervalMs);
    known.set(key, { dueMs, intervalMs: isRested ? FIRST_MS : Math.min(LONGEST_MS, 2 * last.intervalMs) });
    return dueMs - now;
  };
}

// Does a piece of work for each item without keeping the event loop from its other work. Invariant: each
// slice takes about SLICE_MS, and the next slice belongs to the client that has used the least time in the
// last seconds. Called where the number of the items is up to a tenant.
import type { Clock } from "./clock.ts";
import type { FairTurns } from "./fair-turns.ts";

const SLICE_MS = 5;

export interface SlicesOptions {
  readonly turns: Pick<FairTurns, "run">;
  /** Whose turn it is to be. */
  readonly client: string;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly signal: AbortSignal;
}

/** The results, in the order of the items. @throws the signal's reason, before the next slice */
export async function mapInSlices<T, R>(items: readonly T[], work: (item: T) => R, options: SlicesOptions): Promise<R[]> {
  const { turns, client, clock, signal } = options;
  const left = items.values();
  const results: R[] = [];
  const slice = () => {
    signal.throwIfAborted();
    const startMs = clock.monotonicMs();
    for (const item of left) {
      results.push(work(item));
      if (clock.monotonicMs() - startMs >= SLICE_MS) return;
    }
  };
  while (results.length < items.length) await turns.run(client, slice);
  return results;
}

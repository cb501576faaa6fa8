// Lets clients take turns at work that blocks the event loop. Invariants: turns go alternately to the client
// that has recently used the least time and to the one that has waited longest, so light work soon gets a
// turn and no client waits for ever. Clients that have used more than lightMs get at most half of the time
// together.
import { BoundedMap } from "./bounded-map.ts";
import type { Clock } from "./clock.ts";

export type FairTurns = ReturnType<typeof createFairTurns>;

export interface FairTurnsOptions {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  /** A client that has recently used less time is light, and never waits for the loop's pauses. Default 0. */
  readonly lightMs?: number;
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn?: (run: () => void) => void;
}

/** The time that a client has used counts half after this time. */
const HALF_LIFE_MS = 5_000;
const MAX_CLIENTS = 4_096;
/** A shorter piece needs no pause after it. */
const SHORT_MS = 2;

export function createFairTurns({ clock, lightMs = 0, nextTurn = (run) => void setImmediate(run) }: FairTurnsOptions) {
  /** The client that has waited longest comes first. */
  const waiting = new Map<string, (() => void)[]>();
  const spent = new BoundedMap<string, { readonly ms: number; readonly atMs: number }>(MAX_CLIENTS);
  let isWorking = false;
  let isOldestNext = false;
  /** Before this time only light clients work, so that the loop has pauses. */
  let pauseUntilMs = 0;

  const spentBy = (client: string): number => {
    const { ms, atMs } = spent.get(client) ?? { ms: 0, atMs: 0 };
    return ms * 0.5 ** ((clock.monotonicMs() - atMs) / HALF_LIFE_MS);
  };
  const mayWork = (client: string) => spentBy(client) < lightMs || clock.monotonicMs() >= pauseUntilMs;
  const lightest = (): string | undefined => {
    let [found, least] = [undefined as string | undefined, Number.POSITIVE_INFINITY];
    for (const client of waiting.keys()) {
      const ms = spentBy(client);
      if (ms < least) [found, least] = [client, ms];
    }
    return found;
  };
  const measured = <T>(client: string, work: () => T): T => {
    const startMs = clock.monotonicMs();
    const isLight = spentBy(client) < lightMs;
    try {
      return work();
    } finally {
      const nowMs = clock.monotonicMs();
      const tookMs = nowMs - startMs;
      spent.set(client, { ms: spentBy(client) + tookMs, atMs: nowMs });
      if (!isLight && tookMs > SHORT_MS) pauseUntilMs = Math.max(nowMs, pauseUntilMs) + tookMs;
    }
  };
  const work = <T>(client: string, piece: () => T): T => {
    isWorking = true;
    try {
      return measured(client, piece);
    } finally {
      nextTurn(startNext);
    }
  };
  const startNext = () => {
    isWorking = false;
    const [oldest] = waiting.keys();
    const isByAge = isOldestNext && oldest !== undefined && mayWork(oldest);
    const client = isByAge ? oldest : lightest();
    if (client === undefined) return;
    if (!mayWork(client)) {
      clock.after(pauseUntilMs - clock.monotonicMs(), () => {
        if (!isWorking) startNext();
      });
      return;
    }
    isOldestNext = !isByAge;
    const queue = waiting.get(client) ?? [];
    const first = queue.shift();
    waiting.delete(client);
    if (queue.length > 0) waiting.set(client, queue);
    first?.();
  };

  return {
    /**
     * Runs the work when it is the client's turn, immediately if nobody else works. Only the time until it
     * returns counts. Rejects with what it throws.
     */
    async run<T>(client: string, piece: () => T | Promise<T>): Promise<T> {
      if (!isWorking && waiting.size === 0 && mayWork(client)) return work(client, piece);
      const queue = waiting.get(client) ?? [];
      waiting.set(client, queue);
      const done = new Promise<T>((resolve, reject) => {
        queue.push(() => {
          try {
            resolve(work(client, piece));
          } catch (error) {
            reject(error);
          }
        });
      });
      if (!isWorking) startNext();
      return done;
    },
    /** Runs more work of the client's last turn now, and counts its time. */
    goOn: measured,
  };
}

const SLICE_MS = 5;

interface SlicesOptions {
  readonly turns: Pick<FairTurns, "run">;
  readonly client: string;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly signal: AbortSignal;
}

/**
 * Does a piece of work for each item in slices of about SLICE_MS, each in the client's turn.
 * @throws the signal's reason, before the next slice
 */
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

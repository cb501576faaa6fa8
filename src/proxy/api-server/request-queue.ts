// The queue before a pool's connections: first come, first served. Invariants: at most `limit` requests run
// while none waits for longer than `patienceMs`, and never more than `max`.
import type { Clock } from "../../base/clock.ts";
import { type CallSignal, unlessAborted } from "../http/call-signal.ts";

export interface QueueOptions {
  /** How many requests run at a time, so that fifty informers need a few connections. */
  readonly limit: number;
  /** After this wait a request exceeds the limit, so that slow ones do not starve quick ones. */
  readonly patienceMs: number;
  readonly max: number;
}

interface Waiter {
  isLate: boolean;
  /** Without an error the waiter enters. */
  readonly end: (error?: Error) => void;
}

/** @param whenFree calls back when the connection of a request that has just ended can be used again */
export function createRequestQueue({ limit, patienceMs, max }: QueueOptions, clock: Clock, whenFree = afterUndici) {
  // In the order in which they came, so that a late one is always the first.
  const queue = new Set<Waiter>();
  let running = 0;

  const letIn = () => {
    for (const waiter of queue) {
      if (running >= (waiter.isLate ? max : limit)) return;
      running++;
      waiter.end();
    }
  };
  const wait = (signal: CallSignal) =>
    unlessAborted(signal, "waiting for a connection to the API server", (end) => {
      const waiter: Waiter = { isLate: false, end };
      const timer = clock.after(patienceMs, () => {
        waiter.isLate = true;
        letIn();
      });
      queue.add(waiter);
      return () => {
        queue.delete(waiter);
        timer.cancel();
      };
    });

  return {
    /** Undefined: go ahead. Otherwise wait; rejects with `ABORTED` or the error of `refuseWaiting`. */
    enter(signal: CallSignal): Promise<void> | undefined {
      if (running >= limit || queue.size > 0) return wait(signal);
      running++;
      return undefined;
    },
    /** To be called once for each request that went ahead. */
    leave(): void {
      if (queue.size === 0) {
        running--;
        return;
      }
      whenFree(() => {
        running--;
        letIn();
      });
    },
    refuseWaiting(error: Error): void {
      for (const waiter of queue) waiter.end(error);
    },
    get waiting(): number {
      return queue.size;
    },
  };
}

// undici frees a connection in an immediate. A request that enters earlier would get a new connection.
function afterUndici(run: () => void): void {
  queueMicrotask(() => setImmediate(run));
}

// How many requests of a pool run at once. Invariant: a few connections serve everybody while the queue moves; for every
// `patienceMs` of waiting one more may run, up to `max`. So an operator that starts fifty informers costs the API server a
// handful of connections, and slow lists still do not starve quick ones. First come, first served. Used by the upstream client.
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { CallSignal } from "../pipeline/call-signal.ts";

export interface GateOptions {
  /** Requests at once when nobody has to wait long. */
  readonly base: number;
  /** Never more than this. */
  readonly max: number;
  /** How long is waited before one more may run, and between two such, in milliseconds. */
  readonly patienceMs: number;
  /** What counts as waiting: the first in the queue has to (`wait`), or nobody has left meanwhile (`standstill`). */
  readonly growOn: "wait" | "standstill";
}

export interface Gate {
  /** Undefined: go ahead. Otherwise wait; rejects with `ABORTED`, or with the error given to `refuseWaiting`. */
  enter(signal: CallSignal): Promise<void> | undefined;
  /** Once for each that went ahead. */
  leave(): void;
  /** Those that wait now fail with this error: what they wait for cannot be had. */
  refuseWaiting(error: Error): void;
  readonly waiting: number;
}

interface Waiter {
  readonly sinceMs: number;
  readonly enter: () => void;
  readonly refuse: (error: Error) => void;
}

/** After this time without need the limit is back at `base`; the connections beyond it close when idle. */
const CALM_MS = 30_000;

/**
 * Makes an open gate.
 * @param whenFree calls back when the connection of a request that has just ended can be used again
 */
export function createGate(options: GateOptions, clock: Clock, whenFree = afterUndici): Gate {
  const { base, max, patienceMs, growOn } = options;
  const queue = new Set<Waiter>();
  let limit = base;
  let running = 0;
  let neededMs = Number.NEGATIVE_INFINITY;
  /** When the waiting began anew for all: one more was let in, or (at a standstill) somebody left. */
  let movedMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;

  const first = () => queue.values().next().value;
  const letIn = () => {
    for (let head = first(); head !== undefined && running < limit; head = first()) {
      queue.delete(head);
      running++;
      head.enter();
    }
    arm();
  };
  const arm = () => {
    const head = first();
    if (head === undefined || limit >= max) {
      timer?.cancel();
      timer = undefined;
      return;
    }
    timer ??= clock.after(Math.max(0, growAtMs(head) - clock.monotonicMs()), () => {
      timer = undefined;
      const now = first();
      if (now !== undefined && clock.monotonicMs() >= growAtMs(now)) {
        limit++;
        movedMs = neededMs = clock.monotonicMs();
      }
      letIn();
    });
  };
  const growAtMs = (head: Waiter) => Math.max(head.sinceMs, movedMs) + patienceMs;
  const calmDown = () => {
    const now = clock.monotonicMs();
    if (running > base) neededMs = now;
    else if (now - neededMs > CALM_MS) limit = base;
  };

  return {
    enter(signal) {
      if (limit > base) calmDown();
      if (running < limit && queue.size === 0) {
        running++;
        return undefined;
      }
      return new Promise((resolve, reject) => {
        const gone = () => {
          queue.delete(waiter);
          arm();
          reject(new MeshError("ABORTED", "waiting for a connection to the API server: aborted", { cause: signal.reason }));
        };
        const waiter: Waiter = {
          sinceMs: clock.monotonicMs(),
          enter() {
            signal.removeEventListener("abort", gone);
            resolve();
          },
          refuse(error) {
            signal.removeEventListener("abort", gone);
            reject(error);
          },
        };
        queue.add(waiter);
        if (signal.aborted) gone();
        else signal.addEventListener("abort", gone, { once: true });
        arm();
      });
    },
    leave() {
      if (queue.size === 0) {
        running--;
        return;
      }
      if (growOn === "standstill") movedMs = clock.monotonicMs();
      whenFree(() => {
        running--;
        letIn();
      });
    },
    refuseWaiting(error) {
      const refused = [...queue];
      queue.clear();
      arm();
      for (const waiter of refused) waiter.refuse(error);
    },
    get waiting() {
      return queue.size;
    },
  };
}

// undici takes a connection back in an immediate that it asks for after it has told of the response's end: who is let in
// before that gets a new connection.
function afterUndici(run: () => void): void {
  queueMicrotask(() => setImmediate(run));
}

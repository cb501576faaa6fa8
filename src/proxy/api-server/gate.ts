// The queue before a pool's connections: first come, first served. Invariant: never more run than the growth policy allows, and
// who waits is let in, refused or gone, once. So an operator that starts fifty informers costs the API server a handful of
// connections, and slow requests still do not starve quick ones. Used by the upstream client.
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { CallSignal } from "../http/call-signal.ts";
import { Growth, type GrowthOptions } from "./growth.ts";

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

/**
 * Makes an open gate.
 * @param whenFree calls back when the connection of a request that has just ended can be used again
 */
export function createGate(options: GrowthOptions, clock: Clock, whenFree = afterUndici): Gate {
  const growth = new Growth(options);
  const queue = new Set<Waiter>();
  let running = 0;
  let timer: Timer | undefined;

  const first = () => queue.values().next().value;
  const letIn = () => {
    for (let head = first(); head !== undefined && running < growth.limit; head = first()) {
      queue.delete(head);
      running++;
      head.enter();
    }
    arm();
  };
  const arm = () => {
    const head = first();
    const growAtMs = head === undefined ? undefined : growth.growAt(head.sinceMs);
    if (growAtMs === undefined) {
      timer?.cancel();
      timer = undefined;
      return;
    }
    timer ??= clock.after(Math.max(0, growAtMs - clock.monotonicMs()), () => {
      timer = undefined;
      grow();
      letIn();
    });
  };
  const grow = () => {
    const head = first();
    const growAtMs = head === undefined ? undefined : growth.growAt(head.sinceMs);
    const nowMs = clock.monotonicMs();
    if (growAtMs !== undefined && nowMs >= growAtMs) growth.onGrow(nowMs);
  };

  return {
    enter(signal) {
      if (growth.isGrown) growth.onEnter(running, clock.monotonicMs());
      if (running < growth.limit && queue.size === 0) {
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
      growth.onLeave(clock.monotonicMs());
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

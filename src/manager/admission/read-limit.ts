// The limit of all reads that the webhook port causes at the API server. Any pod can send reviews, and what they cause counts as the manager's: the
// API server's flow control would slow down the renewal of its lease. Invariants: at most MAX_AT_ONCE reads at once and PER_SECOND a second; the
// apps take turns, so that a flood for one app delays the others by one turn; each wait ends. Used by add.ts.
import type { Clock } from "../../base/clock.ts";
import { StatusError } from "../../kube/status.ts";
import type { AppName } from "./webhook.ts";

/** Runs the read when it is the app's turn. @throws StatusError ServiceUnavailable if there is no room: the API server tries again */
export type ReadLimit = <T>(app: AppName, read: () => Promise<T>) => Promise<T>;

const MAX_AT_ONCE = 16;
/** An honest cluster needs some a minute: only pods of a rollout and pods that no app selects cause any. */
const PER_SECOND = 20;
const BURST = 40;
/** Short compared with the API server's timeout: it tries again. */
const MAX_WAIT_MS = 2_000;
/** Each review reads two objects at most at the same time. */
const MAX_WAITING_OF_APP = 16;
const MAX_WAITING_APPS = 256;

interface Waiting {
  start(): void;
}

export function createReadLimit(clock: Clock): ReadLimit {
  /** By app; whose turn is next comes first. */
  const waiting = new Map<string, Waiting[]>();
  let running = 0;
  let left = BURST;
  let countedMs = clock.monotonicMs();
  let isTimed = false;

  const refill = () => {
    const nowMs = clock.monotonicMs();
    left = Math.min(BURST, left + ((nowMs - countedMs) * PER_SECOND) / 1_000);
    countedMs = nowMs;
  };
  const next = (): Waiting | undefined => {
    for (const [key, queue] of waiting) {
      waiting.delete(key);
      const first = queue.shift();
      if (queue.length > 0) waiting.set(key, queue);
      return first;
    }
    return undefined;
  };
  const startMore = () => {
    refill();
    while (running < MAX_AT_ONCE && left >= 1) {
      const first = next();
      if (first === undefined) return;
      left--;
      running++;
      first.start();
    }
    if (left >= 1 || waiting.size === 0 || isTimed) return;
    isTimed = true;
    clock.after(Math.ceil(((1 - left) * 1_000) / PER_SECOND), () => {
      isTimed = false;
      startMore();
    });
  };
  const ended = () => {
    running--;
    startMore();
  };

  return async (app, read) => {
    const key = `${app.namespace}/${app.name}`;
    const queue = waiting.get(key) ?? [];
    if (queue.length >= MAX_WAITING_OF_APP || (queue.length === 0 && waiting.size >= MAX_WAITING_APPS)) throw busy();
    const turn = Promise.withResolvers<void>();
    const entry = { start: () => turn.resolve() };
    queue.push(entry);
    waiting.set(key, queue);
    const timer = clock.after(MAX_WAIT_MS, () => {
      queue.splice(queue.indexOf(entry), 1);
      if (queue.length === 0) waiting.delete(key);
      turn.reject(busy());
    });
    const started = turn.promise.finally(() => timer.cancel());
    startMore();
    await started;
    try {
      return await read();
    } finally {
      ended();
    }
  };
}

function busy(): StatusError {
  return new StatusError("ServiceUnavailable", "ctrlmesh: too many reviews cause reads of the API server", {
    retryAfterSeconds: 1,
  });
}

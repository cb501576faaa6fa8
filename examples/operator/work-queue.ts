// A queue of keys. Invariant: a key waits at most once, and one key is processed at a time; none is processed before `start`, so that a pod
// that does not lead collects keys for later.
import type { Log } from "./log.ts";

export interface WorkQueue {
  add(key: string): void;
  start(): void;
  /** Processes no further keys; resolves when the current one is done. */
  stop(): Promise<void>;
}

export interface WorkQueueOptions {
  /** Processes one key. Resolves with the milliseconds until the next time, if one is needed. */
  readonly work: (key: string) => Promise<number | undefined>;
  readonly log: Log;
}

const RETRY_BASE_MS = 50;
const RETRY_MAX_MS = 30_000;

export function createWorkQueue({ work, log }: WorkQueueOptions): WorkQueue {
  const waiting = new Set<string>();
  const failures = new Map<string, number>();
  let isOpen = false;
  let running: Promise<void> | undefined;

  const add = (key: string) => {
    waiting.add(key);
    wake();
  };
  const addAfter = (key: string, delayMs: number) => void setTimeout(() => add(key), delayMs).unref();

  const workOn = async (key: string) => {
    try {
      const againMs = await work(key);
      failures.delete(key);
      if (againMs !== undefined) addAfter(key, againMs);
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      const retryMs = Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** (count - 1));
      log.error("reconciling failed", error, { key, retryMs });
      addAfter(key, retryMs);
    }
  };
  const drain = async () => {
    // A Set iterates in the order of insertion, also over keys that are added meanwhile.
    for (const key of waiting) {
      if (!isOpen) break;
      waiting.delete(key);
      await workOn(key);
    }
  };
  const wake = () => {
    if (!isOpen || waiting.size === 0) return;
    running ??= drain().finally(() => {
      running = undefined;
      wake();
    });
  };

  return {
    add,
    start() {
      isOpen = true;
      wake();
    },
    async stop() {
      isOpen = false;
      await running;
    },
  };
}

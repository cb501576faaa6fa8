// Keys to look at, each once however often it was added, one at a time. Nothing is taken from it before `start`, so that a
// pod that does not lead gathers what it will have to look at.
import type { Log } from "./log.ts";

export interface WorkQueue {
  add(key: string): void;
  start(): void;
  /** Takes nothing more; resolves when the key in work is done. */
  stop(): Promise<void>;
}

export interface WorkQueueOptions {
  /** Looks at one key. Resolves with the milliseconds after which to look again, if it should. */
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
    // A set is walked in the order of insertion, also over what is added meanwhile.
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

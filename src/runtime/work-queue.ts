// A queue of keys for workers, with client-go's guarantees. Invariant: a key waits at most once and has at
// most one worker; a key that is added while its worker runs is queued again afterwards.
import { type BackoffOptions, backoffMs, type Timer } from "../base/clock.ts";
import type { ProcessContext } from "../base/process-context.ts";
import type { WorkQueueMetrics } from "./controller-metrics.ts";

interface WorkQueueOptions extends Pick<ProcessContext, "clock" | "random"> {
  /** The label `name` of the queue's metrics. */
  readonly name: string;
  /** Backoff of a failing key; by default from 50 ms to 2 min. */
  readonly backoff?: BackoffOptions | undefined;
  readonly metrics?: WorkQueueMetrics | undefined;
}

/**
 * Processes a key; must not throw.
 * @param release frees the worker from work that hangs. The key stays in progress until the promise resolves.
 */
type Work = (key: string, release: () => void) => Promise<void>;

const DEFAULT_BACKOFF = { baseMs: 50, maxMs: 120_000 };
/** After shorter work the next key follows immediately. */
const SHORT_MS = 2;

/** Keys are processed in the order of their arrival, so that none starves. */
export function createWorkQueue(options: WorkQueueOptions) {
  const { clock, random, metrics, name, backoff = DEFAULT_BACKOFF } = options;
  const waiting = new Map<string, number>(); // key -> the time of its arrival; a Map keeps this order
  const processing = new Map<string, number>(); // key -> the start of its work
  const dirty = new Set<string>(); // keys added while in progress; queued again when their worker is done
  const delayed = new Map<string, { dueMs: number; timer: Timer }>();
  const failures = new Map<string, number>();
  const wakeups: (() => void)[] = [];
  const { promise: drained, resolve: setDrained } = Promise.withResolvers<void>();
  let closed = false;
  let wasLong = false;
  let isTurnTaken = false;
  const secondsSince = (startedMs: number) => (clock.monotonicMs() - startedMs) / 1000;
  metrics?.trackRunning(name, () => [...processing.values()].map(secondsSince));

  function push(key: string): void {
    waiting.set(key, clock.monotonicMs());
    metrics?.depth.set({ name }, waiting.size);
    wakeups.shift()?.();
  }

  /** Queues the key, unless it already waits. */
  function add(key: string): void {
    if (closed || waiting.has(key) || dirty.has(key)) return;
    metrics?.adds.inc({ name });
    if (processing.has(key)) dirty.add(key);
    else push(key);
  }

  /** Queues the key later. Of several delays for a key, the earliest time counts. */
  function addAfter(key: string, delayMs: number): void {
    if (closed) return;
    if (delayMs <= 0) {
      add(key);
      return;
    }
    const dueMs = clock.monotonicMs() + delayMs;
    const planned = delayed.get(key);
    if (planned !== undefined && planned.dueMs <= dueMs) return;
    planned?.timer.cancel();
    const timer = clock.after(delayMs, () => {
      delayed.delete(key);
      add(key);
    });
    delayed.set(key, { dueMs, timer });
  }

  function dropDelayed(): void {
    for (const { timer } of delayed.values()) timer.cancel();
    delayed.clear();
  }

  function take(): string | undefined {
    for (const [key, addedMs] of waiting) {
      waiting.delete(key);
      processing.set(key, clock.monotonicMs());
      metrics?.depth.set({ name }, waiting.size);
      metrics?.queueDuration.observe({ name }, secondsSince(addedMs));
      return key;
    }
    return undefined;
  }

  function done(key: string): void {
    processing.delete(key);
    if (dirty.delete(key)) push(key);
    checkDrained();
  }

  function checkDrained(): void {
    if (!closed || waiting.size > 0 || processing.size > 0) return;
    setDrained();
    for (const wake of wakeups.splice(0)) wake();
  }

  /** After long work each key gets a turn of the event loop of its own, so that the work of several keys is not one piece. */
  async function untilOwnTurn(): Promise<void> {
    while (isTurnTaken) await new Promise((resolve) => setImmediate(resolve));
    if (!wasLong) return;
    isTurnTaken = true;
    setImmediate(() => {
      isTurnTaken = false;
    });
  }

  async function worker(work: Work): Promise<void> {
    for (;;) {
      await untilOwnTurn();
      const key = take();
      if (key === undefined) {
        if (closed && processing.size === 0) return;
        await new Promise<void>((resolve) => wakeups.push(resolve));
        continue;
      }
      const startedMs = clock.monotonicMs();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const ended = work(key, release).finally(() => {
        metrics?.workDuration.observe({ name }, secondsSince(startedMs));
        wasLong = clock.monotonicMs() - startedMs >= SHORT_MS;
        done(key);
      });
      await Promise.race([ended, released]);
    }
  }

  return {
    /** The number of waiting keys. Delayed keys do not count. */
    get depth() {
      return waiting.size;
    },
    add,
    addAfter,
    /** Queues the key after its backoff, which grows with each call until `forget`. Returns the delay. */
    addRateLimited(key: string): number {
      const attempt = failures.get(key) ?? 0;
      failures.set(key, attempt + 1);
      metrics?.retries.inc({ name });
      const delayMs = backoffMs(attempt, backoff, random);
      addAfter(key, delayMs);
      return delayMs;
    },
    forget: (key: string) => void failures.delete(key),
    /** Processes keys, `concurrency` at a time, until the shutdown is complete. */
    async run(concurrency: number, work: Work): Promise<void> {
      await Promise.all(Array.from({ length: concurrency }, () => worker(work)));
    },
    /** Removes all waiting and delayed keys. */
    clear() {
      waiting.clear();
      dirty.clear();
      dropDelayed();
      metrics?.depth.set({ name }, 0);
      checkDrained();
    },
    /** Accepts no more keys, and drops delayed ones; resolves when the waiting keys have been processed. */
    shutdown(): Promise<void> {
      closed = true;
      dropDelayed();
      checkDrained();
      return drained;
    },
  };
}

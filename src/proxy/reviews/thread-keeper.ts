// Keeps a thread running: one that ends by itself is started again after a pause. Invariant: whatever happens
// in the thread, the process and its other work continue.
import { Worker, type WorkerOptions } from "node:worker_threads";
import { backoffMs, type Timer } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";

export interface ThreadKeeper<To> {
  start(): void;
  /** Does nothing while there is no thread: `onStart` posts to the next one. */
  post(message: To): void;
  retire(): void;
  stop(): Promise<void>;
}

export interface ThreadKeeperOptions<From> extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly file: URL;
  /** Asked for each thread. */
  readonly workerData: () => unknown;
  readonly resourceLimits: NonNullable<WorkerOptions["resourceLimits"]>;
  /** A thread has just been started. What is posted now waits for it. */
  readonly onStart: () => void;
  readonly onMessage: (message: From) => void;
  /** The thread has ended by itself. */
  readonly onEnd: () => void;
}

const BACKOFF = { baseMs: 200, maxMs: 10_000 };
/** A thread that has lived so long begins the backoff anew. */
const LIVED_MS = 60_000;

export function createThreadKeeper<To, From>(options: ThreadKeeperOptions<From>): ThreadKeeper<To> {
  const { file, workerData, resourceLimits, onStart, onMessage, onEnd, clock, random, log } = options;
  let thread: Worker | undefined;
  let timer: Timer | undefined;
  let isRetired = false;
  let ends = 0;

  const start = () => {
    const startedMs = clock.monotonicMs();
    const worker = new Worker(file, { execArgv: [], workerData: workerData(), resourceLimits });
    thread = worker;
    let cause: unknown;
    worker.on("message", (message: From) => {
      if (thread === worker) onMessage(message);
    });
    worker.on("error", (error) => {
      cause = error;
    });
    worker.on("exit", (code) => {
      if (thread !== worker) return; // stopped
      thread = undefined;
      log.error({ err: cause ?? new Error(`exit code ${code}`), file: file.pathname, isRetired }, "a thread has ended by itself");
      onEnd();
      if (isRetired) return;
      if (clock.monotonicMs() - startedMs >= LIVED_MS) ends = 0;
      timer = clock.after(backoffMs(ends++, BACKOFF, random), start);
    });
    worker.unref(); // after the listeners, since one for messages keeps the process alive again
    onStart();
  };
  const retire = () => {
    isRetired = true;
    timer?.cancel();
  };
  return {
    start,
    post: (message) => thread?.postMessage(message),
    retire,
    async stop() {
      retire();
      const last = thread;
      thread = undefined;
      await last?.terminate();
    },
  };
}

// The thread of the listener for the operator's webhooks, as a server. Invariants: its start waits for
// nothing of the operator; a thread that ends by itself is replaced, and ends nothing else.
import { extname } from "node:path";
import { Worker, type WorkerOptions } from "node:worker_threads";
import { backoffMs, type Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { TrafficServer } from "../server/traffic-server.ts";
import type { FromThread, ListenerState, ThreadSettings, ToThread } from "./thread-messages.ts";

export type ReviewThread = ReturnType<typeof createReviewThread>;

export interface ReviewThreadOptions extends Pick<ThreadKeeperOptions<never>, "onStart" | "onEnd" | "clock" | "random" | "log"> {
  readonly settings: ThreadSettings;
  readonly onMessage: (message: Exclude<FromThread, ListenerState>) => void;
}

/**
 * Bodies are no part of the heap and have a bound of their own (read.ts). 256 connections, each with the read
 * part of a review, take some tens of MiB. A small young generation frees the bytes of passed bodies soon.
 */
const HEAP = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 2 };

export function createReviewThread({ settings, onMessage, onEnd, ...options }: ReviewThreadOptions) {
  let { port } = settings.listen;
  let isListening = false;
  let isStopping = false;
  /** What `start` or `stop` waits for. The end of a thread resolves it too: the next thread may live. */
  let answer = Promise.withResolvers<void>();
  const keeper = createThreadKeeper<ToThread, FromThread>({
    ...options,
    file: new URL(`./thread${extname(import.meta.url)}`, import.meta.url),
    workerData: (): ThreadSettings => ({ ...settings, listen: { ...settings.listen, port } }),
    resourceLimits: HEAP,
    onMessage(message) {
      switch (message.kind) {
        case "listening":
          isListening = true;
          port = message.port;
          return answer.resolve();
        case "not-listening":
          return answer.reject(new MeshError("LISTEN_FAILED", message.reason));
        case "drained":
          return answer.resolve();
        default:
          return onMessage(message);
      }
    },
    onEnd() {
      isListening = false;
      onEnd();
      answer.resolve();
    },
  });
  const server: TrafficServer = {
    name: "webhooks",
    get listening() {
      return isListening && !isStopping;
    },
    get port() {
      return port;
    },
    async start() {
      keeper.start();
      await answer.promise;
    },
    async stop() {
      isStopping = true;
      keeper.retire();
      if (isListening) {
        answer = Promise.withResolvers();
        keeper.post({ kind: "drain" });
        await answer.promise;
        isListening = false;
      }
      await keeper.stop();
    },
  };
  return {
    server,
    /** From the moment when the thread listens until it has drained or ended. */
    get isListening(): boolean {
      return isListening;
    },
    post: keeper.post,
  };
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

/** Starts a thread that ends by itself again, after a pause. Nothing in the thread ends the process. */
export function createThreadKeeper<To, From>(options: ThreadKeeperOptions<From>) {
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
    /** Does nothing while there is no thread: `onStart` posts to the next one. */
    post: (message: To) => thread?.postMessage(message),
    retire,
    async stop(): Promise<void> {
      retire();
      const last = thread;
      thread = undefined;
      await last?.terminate();
    },
  };
}

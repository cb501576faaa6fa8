// A running controller: sources queue requests, and workers reconcile them. Invariants: no reconcile runs
// before every source has synced; an object has one reconcile at a time; a reconcile that fails never ends
// the process, and one that hangs does not block its worker.
import { onAbort, untilAborted } from "../base/abort.ts";
import { type BackoffOptions, type Clock, type Random, systemClock, systemRandom } from "../base/clock.ts";
import { isMeshError, MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import { isStatus } from "../kube/status.ts";
import type { ControllerMetrics } from "./controller-metrics.ts";
import type { Informers } from "./informers.ts";
import { formatRequest, parseRequest, type Reconciler, type Request, TerminalError } from "./reconciler.ts";
import { createWorkQueue } from "./work-queue.ts";

/** A source without its object type, so that a controller has one list of sources. */
export interface ChangeSource {
  readonly synced: Promise<void>;
  /** Begins to queue requests. Returns the function that ends this. */
  connect(enqueue: (request: Request) => void): () => void;
}

export interface ControllerOptions {
  /** Name in logs and metrics; unique in the process. */
  readonly name: string;
  /** The source of the stores: controllers that watch the same kind share one list and one watch. */
  readonly informers: Pick<Informers, "store">;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** How many objects are reconciled at the same time; default 1. */
  readonly concurrency?: number;
  /** How long the first change of a burst waits, so that the burst becomes one reconcile; default 0. */
  readonly debounceMs?: number;
  /** The wait before a failing object is tried again, doubled each time; default 50 ms to 2 min. */
  readonly backoff?: BackoffOptions;
  /**
   * How long one reconcile may take; default no bound. Then its signal fires with MeshError
   * `RECONCILE_TIMEOUT`, an ordinary failure. A reconcile that still runs a second later loses its worker, so
   * that other objects are reconciled; its own object waits for its end.
   */
  readonly reconcileTimeoutMs?: number;
  /**
   * How long running reconciles may continue after a stop before their signal fires; default 5,000. Keep it
   * below the bound of the whole drain (10,000), at which the process ends.
   */
  readonly graceMs?: number;
  readonly metrics?: ControllerMetrics;
}

/** Runs once. `start` resolves immediately; reconciles begin when the stores have synced. */
export interface Controller extends Runnable {
  /** Queues a request from outside the sources, such as a gRPC message. Debounced like a change. */
  enqueue(request: Request): void;
}

type Outcome =
  | { readonly result: "success" }
  | { readonly result: "requeue_after"; readonly afterMs: number }
  | { readonly result: "error"; readonly error: unknown }
  /** A stop has ended the reconcile. This is no failure, and there is no retry. */
  | { readonly result: "canceled" };

/** How long a reconcile may run after its signal has fired. */
const STUCK_AFTER_MS = 1_000;

export function createController(
  options: ControllerOptions,
  sources: readonly ChangeSource[],
  reconciler: Reconciler,
): Controller {
  const { name, clock = systemClock, random = systemRandom, debounceMs = 0, graceMs = 5_000 } = options;
  const { metrics, backoff, reconcileTimeoutMs: timeoutMs } = options;
  const log = options.log.child({ controller: name });
  const queue = createWorkQueue({ name, clock, random, metrics: metrics?.queue, backoff });
  const work = new AbortController();
  const stopping = new AbortController();
  const unsubscribe: (() => void)[] = [];
  let running: Promise<void> | undefined;

  const enqueue = (request: Request) => queue.addAfter(formatRequest(request), debounceMs);

  async function run(): Promise<void> {
    await Promise.race([Promise.all(sources.map((source) => source.synced)), untilAborted(stopping.signal)]);
    if (stopping.signal.aborted) return;
    log.debug("controller synced");
    await queue.run(options.concurrency ?? 1, reconcile);
  }

  async function reconcile(key: string, release: () => void): Promise<void> {
    const startedMs = clock.monotonicMs();
    metrics?.active.inc({ controller: name });
    const outcome = await attempt(key, release);
    metrics?.active.dec({ controller: name });
    metrics?.duration.observe({ controller: name }, (clock.monotonicMs() - startedMs) / 1000);
    if (outcome.result === "canceled") return;
    metrics?.reconciles.inc({ controller: name, result: outcome.result });
    if (outcome.result === "error") retry(key, outcome.error);
    else queue.forget(key);
    if (outcome.result === "requeue_after") queue.addAfter(key, outcome.afterMs);
  }

  /** Calls the reconciler once. Never rejects. */
  async function attempt(key: string, release: () => void): Promise<Outcome> {
    if (work.signal.aborted) return { result: "canceled" }; // taken from the queue during a stop
    const limit = timeoutMs === undefined ? undefined : startLimit(timeoutMs, key, release);
    try {
      const { requeueAfterMs } = await reconciler.reconcile(parseRequest(key), limit?.signal ?? work.signal);
      return requeueAfterMs === undefined ? { result: "success" } : { result: "requeue_after", afterMs: requeueAfterMs };
    } catch (error) {
      return work.signal.aborted ? { result: "canceled" } : { result: "error", error };
    } finally {
      limit?.end();
    }
  }

  /** A signal that fires at a stop, or at the timeout. */
  function startLimit(limitMs: number, object: string, release: () => void) {
    const expired = new AbortController();
    let timer = clock.after(limitMs, () => {
      expired.abort(new MeshError("RECONCILE_TIMEOUT", `reconciling: not done after ${limitMs} ms`));
      metrics?.timeouts.inc({ controller: name });
      timer = clock.after(STUCK_AFTER_MS, () => {
        log.error({ object, timeoutMs }, "reconcile ignores its signal: its object waits for it, other objects are reconciled");
        release();
      });
    });
    return { signal: AbortSignal.any([work.signal, expired.signal]), end: () => timer.cancel() };
  }

  /** Queues the object again after a backoff that grows with each failure, except after a terminal error. */
  function retry(key: string, error: unknown): void {
    metrics?.errors.inc({ controller: name });
    if (error instanceof TerminalError) {
      metrics?.terminalErrors.inc({ controller: name });
      queue.forget(key);
      log.error({ err: error, object: key }, "reconcile failed for good");
      return;
    }
    const delayMs = Math.round(queue.addRateLimited(key));
    // A conflict is normal: another writer was first, and the retry reads what it wrote.
    if (isStatus(error, "Conflict")) log.debug({ err: error, object: key, delayMs }, "reconcile conflicted");
    else log.warn({ err: error, object: key, delayMs }, "reconcile failed");
  }

  return {
    name: `controller ${name}`,
    enqueue,
    async start(signal) {
      // After a lost leadership every further write may collide with the new leader's, so there is no grace,
      // and no wait for the groups that are drained before this one.
      onAbort(signal, () => {
        if (isMeshError(signal.reason, "LEADERSHIP_LOST")) work.abort(signal.reason);
      });
      for (const source of sources) unsubscribe.push(source.connect(enqueue));
      running = run();
    },
    async stop() {
      stopping.abort();
      for (const end of unsubscribe.splice(0)) end();
      queue.clear(); // the next start finds these objects again: reconcilers are level-based
      const grace = clock.after(graceMs, () => work.abort());
      const drained = queue.shutdown();
      await running;
      if (running !== undefined) await drained;
      grace.cancel();
    },
  };
}

// A controller: sources that queue requests, and workers that reconcile them. Invariant: no reconcile before every
// source has synced, one reconcile an object at a time, and whatever a reconciler throws ends in a retry or in the log,
// never in the process. Built by each controllers/*/add.ts.
import type { BackoffOptions } from "../base/backoff.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../base/clock.ts";
import { isMeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import type { Resource } from "../kube/client/resource.ts";
import type { SelectorOptions } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import { createSource, type MapFunction, ownerRequests, type Source, selfRequest } from "./controller-source.ts";
import type { Informers } from "./informers.ts";
import type { Predicate } from "./predicates.ts";
import { formatRequest, parseRequest, type Reconciler, type Request, TerminalError } from "./reconciler.ts";
import { createWorkQueue } from "./work-queue.ts";
import type { WorkQueueMetrics } from "./work-queue-metrics.ts";

export interface ControllerOptions {
  /** Name in logs and metrics. */
  readonly name: string;
  readonly informers: Pick<Informers, "store">;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Reconciles at the same time; default 1. */
  readonly concurrency?: number;
  /** Changes wait this long in milliseconds, so that a burst of them is one reconcile; default 0. */
  readonly debounceMs?: number;
  /** Backoff of a failing object; default 50 ms to 2 min. */
  readonly backoff?: BackoffOptions;
  /** How long running reconciles may go on after a stop before their signal fires, in milliseconds; default 5,000. */
  readonly graceMs?: number;
  readonly metrics?: WorkQueueMetrics;
}

export interface SourceOptions<T extends KubeObject> {
  /** All must pass. */
  readonly predicates?: readonly Predicate<T>[];
  readonly selectors?: SelectorOptions;
}

/** A controller that runs once, from `start` to `stop`. `start` resolves at once; reconciles begin when the stores synced. */
export interface Controller extends Runnable {
  /** Queues a request from outside the sources: a gRPC message, a timer. */
  enqueue(request: Request): void;
}

export interface ControllerBuilder {
  /** The kind that is reconciled: a change of an object queues the object. */
  for<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /** A kind whose objects the reconciled ones own: a change queues the owner. Needs `for` before it. */
  owns<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /** Any other kind: a change queues what `map` says, for the object as it was and as it is. */
  watches<T extends KubeObject>(resource: Resource<T>, map: MapFunction<T>, options?: SourceOptions<T>): ControllerBuilder;
  withReconciler(reconciler: Reconciler): Controller;
}

/** Begins a controller: `controllerOf({...}).for(A).owns(B).withReconciler(r)`. */
export function controllerOf(options: ControllerOptions): ControllerBuilder {
  return builder(options, [], undefined);
}

function builder(options: ControllerOptions, sources: readonly Source[], primary: Resource | undefined): ControllerBuilder {
  const add = <T extends KubeObject>(
    resource: Resource<T>,
    map: MapFunction<T>,
    { predicates = [], selectors }: SourceOptions<T>,
  ) => createSource({ store: options.informers.store(resource, selectors), map, predicates });
  return {
    for: (resource, more = {}) => builder(options, [...sources, add(resource, selfRequest, more)], resource as Resource),
    owns(resource, more = {}) {
      if (primary === undefined) throw new TypeError("building a controller: owns() needs for() before it");
      return builder(options, [...sources, add(resource, ownerRequests(primary), more)], primary);
    },
    watches: (resource, map, more = {}) => builder(options, [...sources, add(resource, map, more)], primary),
    withReconciler: (reconciler) => createController(options, sources, reconciler),
  };
}

function createController(options: ControllerOptions, sources: readonly Source[], reconciler: Reconciler): Controller {
  const { name, clock = systemClock, random = systemRandom, debounceMs = 0, graceMs = 5_000 } = options;
  const log = options.log.child({ controller: name });
  const { metrics, backoff } = options;
  const queue = createWorkQueue({ name, clock, random, metrics, ...(backoff === undefined ? {} : { backoff }) });
  const work = new AbortController();
  const stopping = new AbortController();
  const unsubscribe: (() => void)[] = [];
  let lifetime: AbortSignal | undefined;
  let running: Promise<void> | undefined;

  const enqueue = (request: Request) => queue.addAfter(formatRequest(request), debounceMs);

  async function run(): Promise<void> {
    const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([Promise.all(sources.map((source) => source.synced)), stopped]);
    if (stopping.signal.aborted) return;
    log.debug("controller synced");
    await queue.run(options.concurrency ?? 1, reconcile);
  }

  async function reconcile(key: string): Promise<void> {
    const request = parseRequest(key);
    try {
      const { requeueAfterMs } = await reconciler.reconcile(request, work.signal);
      queue.forget(key);
      if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs);
    } catch (error) {
      retry(key, request, error);
    }
  }

  function retry(key: string, request: Request, error: unknown): void {
    if (work.signal.aborted) return; // it was told to give up
    if (error instanceof TerminalError) {
      queue.forget(key);
      log.error({ err: error, ...request }, "reconcile failed for good");
      return;
    }
    const delayMs = Math.round(queue.addRateLimited(key));
    // A conflict is everyday business: somebody else wrote first, the retry reads that.
    if (isStatus(error, "Conflict")) log.debug({ err: error, ...request, delayMs }, "reconcile conflicted");
    else log.warn({ err: error, ...request, delayMs }, "reconcile failed");
  }

  async function stop(): Promise<void> {
    stopping.abort();
    for (const end of unsubscribe.splice(0)) end();
    queue.clear(); // what waits is found again by the next start: reconcilers are level-based
    // Without leadership every further write may meet the new leader's, so there is no grace.
    if (isMeshError(lifetime?.reason, "LEADERSHIP_LOST")) work.abort(lifetime?.reason);
    const grace = clock.after(graceMs, () => work.abort());
    const drained = queue.shutdown();
    await running;
    if (running !== undefined) await drained;
    grace.cancel();
  }

  return {
    name: `controller ${name}`,
    enqueue,
    async start(signal) {
      lifetime = signal;
      // Lost leadership must reach the reconcilers at once, before the groups are drained one by one.
      signal.addEventListener("abort", () => isMeshError(signal.reason, "LEADERSHIP_LOST") && work.abort(signal.reason), {
        once: true,
      });
      for (const source of sources) unsubscribe.push(source.connect(enqueue));
      running = run();
    },
    stop,
  };
}

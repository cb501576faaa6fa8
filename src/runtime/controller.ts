// The builder of a controller: which kind it reconciles, which kinds it watches, and how a change becomes a request. Invariant: a
// builder is immutable; each call returns a new one. Called by each controllers/*/add.ts; it builds running-controller.ts.
import type { BackoffOptions } from "../base/backoff.ts";
import type { Clock, Random } from "../base/clock.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import type { Resource } from "../kube/client/resource.ts";
import type { SelectorOptions } from "../kube/client/types.ts";
import type { KubeObject } from "../kube/types.ts";
import type { ControllerMetrics } from "./controller-metrics.ts";
import { createSource, type MapFunction, ownerRequests, type Source, selfRequest } from "./controller-source.ts";
import type { Informers } from "./informers.ts";
import type { Predicate } from "./predicates.ts";
import type { Reconciler, Request } from "./reconciler.ts";
import { createController } from "./running-controller.ts";

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
  /**
   * How long changes wait, in milliseconds, so that a burst of changes becomes one reconcile; default 0. The wait begins with
   * the first change, and later changes do not extend it.
   */
  readonly debounceMs?: number;
  /** The wait before a failing object is tried again. It doubles with each failure, with jitter; default 50 ms to 2 min. */
  readonly backoff?: BackoffOptions;
  /**
   * How long one reconcile may take, in milliseconds; default no bound. Then its signal fires with the reason MeshError
   * `RECONCILE_TIMEOUT`, which is an ordinary failure. A reconcile that still runs a second later loses its worker, so that other
   * objects are reconciled; its own object waits until the reconcile has ended.
   */
  readonly reconcileTimeoutMs?: number;
  /**
   * How long running reconciles may continue after a stop before their signal fires, in milliseconds; default 5,000. Keep it
   * below the bound of the whole drain (RunOptions.drainMs, 10,000): at that bound the process ends, whatever still runs.
   */
  readonly graceMs?: number;
  readonly metrics?: ControllerMetrics;
}

export interface SourceOptions<T extends KubeObject> {
  /** A change must pass all of them. Default: every change passes. See predicates.ts. */
  readonly predicates?: readonly Predicate<T>[];
  /** Which objects are watched; default: all, in all namespaces. */
  readonly selectors?: SelectorOptions;
}

/** A controller runs once, from `start` to `stop`. `start` resolves at once; reconciles begin when the stores have synced. */
export interface Controller extends Runnable {
  /** Queues a request from outside the sources: a gRPC message, a timer, a webhook. Debounced like a change. */
  enqueue(request: Request): void;
}

export interface ControllerBuilder {
  /** The kind to reconcile: a change of an object queues the object. Usually with the predicate generationChanged. */
  for<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * A kind of owned objects: a change queues the object's controller, by its owner reference.
   * @throws TypeError if `for` was not called before
   */
  owns<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * Any other kind: a change queues the requests that `map` returns for the old and for the new object.
   * @param map pure and fast. It must not throw: then the error is logged and the change queues nothing
   */
  watches<T extends KubeObject>(resource: Resource<T>, map: MapFunction<T>, options?: SourceOptions<T>): ControllerBuilder;
  /** Builds the controller. Its stores already exist; nothing runs before `start`. */
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

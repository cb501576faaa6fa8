// How a controller is described: what it reconciles, what else it watches, and how requests follow from that. The builder
// is immutable; what it builds is running-controller.ts. Called by each controllers/*/add.ts.
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
  /** Where the stores come from: controllers that watch the same kind share one list and one watch. */
  readonly informers: Pick<Informers, "store">;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Reconciles at the same time, each of another object; default 1. */
  readonly concurrency?: number;
  /**
   * Changes wait this long in milliseconds, so that a burst of them is one reconcile; default 0. The wait begins with the
   * first change and is not prolonged by the next ones.
   */
  readonly debounceMs?: number;
  /** Wait before a failing object is tried again: doubles with each failure, with jitter; default 50 ms to 2 min. */
  readonly backoff?: BackoffOptions;
  /**
   * How long one reconcile may take in milliseconds; default without bound. Then its signal fires with the reason
   * MeshError `RECONCILE_TIMEOUT`, which is a failure like any other. One that goes on all the same for a second more loses
   * its worker, so that the others go on; its own object waits until it has ended.
   */
  readonly reconcileTimeoutMs?: number;
  /**
   * How long running reconciles may go on after a stop before their signal fires, in milliseconds; default 5,000. Stay below
   * the bound of the whole drain (RunOptions.drainMs, 10,000), after which the process ends with what still runs.
   */
  readonly graceMs?: number;
  readonly metrics?: ControllerMetrics;
}

export interface SourceOptions<T extends KubeObject> {
  /** Which changes count; all must pass. Default: every change. See predicates.ts. */
  readonly predicates?: readonly Predicate<T>[];
  /** Which objects are watched at all; default: those of all namespaces. */
  readonly selectors?: SelectorOptions;
}

/** A controller that runs once, from `start` to `stop`. `start` resolves at once; reconciles begin when the stores synced. */
export interface Controller extends Runnable {
  /** Queues a request from outside the sources: a gRPC message, a timer, a webhook. Debounced like a change. */
  enqueue(request: Request): void;
}

export interface ControllerBuilder {
  /** The kind that is reconciled: a change of an object queues the object. Usually with the predicate generationChanged. */
  for<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * A kind whose objects the reconciled ones own: a change queues the owner that is marked as controller.
   * @throws TypeError without a `for` before it
   */
  owns<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * Any other kind: a change queues what `map` says, for the object as it was and as it is.
   * @param map pure, quick, and must not throw: a change at which it throws is logged and queues nothing
   */
  watches<T extends KubeObject>(resource: Resource<T>, map: MapFunction<T>, options?: SourceOptions<T>): ControllerBuilder;
  /** Builds it. The stores of its kinds are asked for already; nothing runs before `start`. */
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

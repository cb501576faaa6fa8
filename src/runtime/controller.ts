// The builder of a controller: which kind it reconciles, which kinds it watches, and how a change becomes a request. Invariant: a
// builder is immutable; each call returns a new one. Called by each controllers/*/add.ts; it builds running-controller.ts.
import type { Resource } from "../kube/client/resource.ts";
import type { SelectorOptions } from "../kube/client/types.ts";
import type { KubeObject } from "../kube/types.ts";
import { type ChangeSource, createSource, type MapFunction, ownerRequests, selfRequest } from "./controller-source.ts";
import type { Predicate } from "./predicates.ts";
import type { Reconciler } from "./reconciler.ts";
import { type Controller, type ControllerOptions, createController } from "./running-controller.ts";

export type { Controller, ControllerOptions } from "./running-controller.ts";

export interface SourceOptions<T extends KubeObject> {
  /** A change must pass all of them. Default: every change passes. See predicates.ts. */
  readonly predicates?: readonly Predicate<T>[];
  /** Which objects are watched; default: all, in all namespaces. */
  readonly selectors?: SelectorOptions;
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

function builder(options: ControllerOptions, sources: readonly ChangeSource[], primary: Resource | undefined): ControllerBuilder {
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

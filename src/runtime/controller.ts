// The builder of a controller: which kind it reconciles, which kinds it watches, and how a change becomes a
// request. Invariant: a builder is immutable; each call returns a new one.
import { controllerRefOf } from "../kube/client/owner.ts";
import type { Resource } from "../kube/client/resource.ts";
import type { SelectorOptions } from "../kube/client/types.ts";
import type { KubeObject } from "../kube/types.ts";
import { isDeepEqual } from "./merge-patch.ts";
import type { Reconciler, Request } from "./reconciler.ts";
import { type ChangeSource, type Controller, type ControllerOptions, createController } from "./running-controller.ts";
import type { Change } from "./store.ts";

export type { Controller, ControllerOptions } from "./running-controller.ts";

export interface SourceOptions<T extends KubeObject> {
  /** A change must pass all predicates. Default: none. */
  readonly predicates?: readonly Predicate<T>[];
  /** Which objects are watched; default: all, in all namespaces. */
  readonly selectors?: SelectorOptions;
}

export interface ControllerBuilder {
  /** The kind to reconcile: a change of an object queues the object. Usually with `generationChanged`. */
  for<T extends KubeObject>(resource: Resource<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * Any other kind: a change queues the requests that `map` returns for the old and for the new object, so
   * that the former target of a reference is reconciled too.
   * @param map pure and fast. If it throws, the error is logged and the change queues nothing
   */
  watches<T extends KubeObject>(resource: Resource<T>, map: MapFunction<T>, options?: SourceOptions<T>): ControllerBuilder;
  /**
   * Any other source of events, for example reports of other processes: `on(registry.onChange, map)`. An
   * event queues the requests that `map` returns. The controller does not wait for such a source.
   * @param subscribe called at the start of the controller; may return the function that ends the
   * subscription
   */
  on<E>(subscribe: Subscribe<E>, map: (event: E) => readonly Request[]): ControllerBuilder;
  /** Builds the controller. Its stores already exist; nothing runs before `start`. */
  withReconciler(reconciler: Reconciler): Controller;
}

/** The requests that a change of this object queues. */
type MapFunction<T extends KubeObject> = (object: T) => readonly Request[];

/** Calls the listener for every event, until the returned function, if there is one, is called. */
type Subscribe<E> = (listener: (event: E) => void) => unknown;

/** Begins a controller: `controllerOf({...}).for(A).watches(B, map).withReconciler(r)`. */
export function controllerOf(options: ControllerOptions): ControllerBuilder {
  return builder(options, []);
}

function builder(options: ControllerOptions, sources: readonly ChangeSource[]): ControllerBuilder {
  const watches: ControllerBuilder["watches"] = (resource, map, { predicates = [], selectors } = {}) => {
    const store = options.informers.store(resource, selectors);
    const connect: ChangeSource["connect"] = (enqueue) =>
      store.onChange((change) => {
        if (!predicates.every((predicate) => predicate(change))) return;
        for (const object of objectsOf(change)) for (const request of map(object)) enqueue(request);
      });
    return builder(options, [...sources, { synced: store.synced, connect }]);
  };
  return {
    for: (resource, more) => watches(resource, selfRequest, more),
    watches,
    on: (subscribe, map) => builder(options, [...sources, createEventSource(subscribe, map)]),
    withReconciler: (reconciler) => createController(options, sources, reconciler),
  };
}

function createEventSource<E>(subscribe: Subscribe<E>, map: (event: E) => readonly Request[]): ChangeSource {
  const connect: ChangeSource["connect"] = (enqueue) => {
    const unsubscribe = subscribe((event) => {
      for (const request of map(event)) enqueue(request);
    });
    return () => {
      if (typeof unsubscribe === "function") unsubscribe();
    };
  };
  return { synced: Promise.resolve(), connect };
}

function objectsOf<T extends KubeObject>(change: Change<T>): readonly T[] {
  return change.type === "updated" ? [change.previous, change.object] : [change.object];
}

export function selfRequest({ metadata }: KubeObject): readonly Request[] {
  return [{ namespace: metadata.namespace ?? "", name: metadata.name ?? "" }];
}

/** The object's controller, if it is of this kind: `watches(CONFIG_MAPS, controllerRequest(GREETINGS))`. */
export function controllerRequest(controller: Resource): MapFunction<KubeObject> {
  return (object) => {
    const reference = controllerRefOf(object);
    if (reference?.kind !== controller.kind || groupOf(reference.apiVersion) !== controller.group) return [];
    return [{ namespace: controller.namespaced ? (object.metadata.namespace ?? "") : "", name: reference.name }];
  };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}

/** True for a change that leads to a reconcile. The predicates below pass every addition and deletion. */
export type Predicate<T extends KubeObject = KubeObject> = (change: Change<T>) => boolean;

/** Passes updates that changed the spec or began the deletion: both raise metadata.generation. */
export const generationChanged: Predicate = (change) =>
  change.type !== "updated" ||
  change.object.metadata.generation !== change.previous.metadata.generation ||
  change.object.metadata.deletionTimestamp !== change.previous.metadata.deletionTimestamp;

export const labelsChanged: Predicate = changed(({ metadata }) => metadata.labels ?? {});

/** Passes updates that changed the result of `read`: `changed((pod) => pod.status?.phase)`. */
export function changed<T extends KubeObject>(read: (object: T) => unknown): Predicate<T> {
  return (change) => change.type !== "updated" || !isDeepEqual(read(change.object), read(change.previous));
}

/** Passes a change that at least one of the predicates passes. */
export function anyOf<T extends KubeObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

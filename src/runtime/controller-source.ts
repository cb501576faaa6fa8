// A source of a controller: a store whose changes become requests. Invariant: an update queues the requests of the old object and of
// the new one, so that the former target of a reference is reconciled too. Made by controller.ts.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { controllerOfKind } from "./owner-reference.ts";
import type { Predicate } from "./predicates.ts";
import type { Request } from "./reconciler.ts";
import type { Change, Store } from "./store.ts";

/** The requests that a change of this object queues. */
export type MapFunction<T extends KubeObject> = (object: T) => readonly Request[];

/** A source without its object type, so that a controller has a list of sources. */
export interface ChangeSource {
  readonly synced: Promise<void>;
  /** Begins to queue requests; returns the function that ends it. */
  connect(enqueue: (request: Request) => void): () => void;
}

/** Combines a store, a map and predicates; a change must pass all of them. */
export function createSource<T extends KubeObject>(source: {
  readonly store: Store<T>;
  readonly map: MapFunction<T>;
  readonly predicates: readonly Predicate<T>[];
}): ChangeSource {
  const { store, map, predicates } = source;
  return {
    synced: store.synced,
    connect: (enqueue) =>
      store.onChange((change) => {
        if (!predicates.every((predicate) => predicate(change))) return;
        for (const object of objectsOf(change)) for (const request of map(object)) enqueue(request);
      }),
  };
}

function objectsOf<T extends KubeObject>(change: Change<T>): readonly T[] {
  return change.type === "updated" ? [change.previous, change.object] : [change.object];
}

/** The object itself. */
export function selfRequest({ metadata }: KubeObject): readonly Request[] {
  return [{ namespace: metadata.namespace ?? "", name: metadata.name ?? "" }];
}

/** The object's controller, if it is of this kind. */
export function ownerRequests(owner: Resource): MapFunction<KubeObject> {
  return (object) => {
    const reference = controllerOfKind(object, owner);
    if (reference === undefined) return [];
    return [{ namespace: owner.namespaced ? (object.metadata.namespace ?? "") : "", name: reference.name }];
  };
}

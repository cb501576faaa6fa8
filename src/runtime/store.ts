// The cache of one kind, which a reflector fills. Invariants: objects are deeply frozen; a handler sees a
// state at least as new as its change; older events never replace what this process has written.
import { isLaterVersion } from "../kube/resource-version.ts";
import type { KubeObject } from "../kube/types.ts";

export type Change<T extends KubeObject> =
  | { readonly type: "added"; readonly object: T }
  | { readonly type: "updated"; readonly object: T; readonly previous: T }
  | { readonly type: "deleted"; readonly object: T };

export type ChangeHandler<T extends KubeObject> = (change: Change<T>) => void;

export interface Store<T extends KubeObject> {
  /** Resolves once the first list is in the store and the handlers have been called for it. */
  readonly synced: Promise<void>;
  readonly hasSynced: boolean;
  readonly size: number;
  /** @param namespace omitted for cluster-scoped kinds */
  get(name: string, namespace?: string): T | undefined;
  /** All objects, or those of one namespace. */
  list(namespace?: string): readonly T[];
  /**
   * Stores an object that the API server has returned, so that the next reconcile sees it before the watch
   * brings it. Does nothing if the store has a version as new, if the object was deleted later, or if the
   * versions cannot be compared. The object must match the store's selectors.
   */
  wrote(object: T): void;
  /** Calls the handler with an `added` for every object, then for every change. Returns its unsubscriber. */
  onChange(handler: ChangeHandler<T>): () => void;
}

export interface WritableStore<T extends KubeObject> extends Store<T> {
  /**
   * Publishes the differences as changes. Then the store is synced. Written objects that are newer than the
   * list stay until the next list.
   * @param version of the list
   */
  replace(objects: readonly T[], version?: string): void;
  upsert(object: T): void;
  remove(object: T): void;
}

/** "namespace/name", or "name" for cluster-scoped objects. */
export function keyOf(name: string, namespace: string | undefined): string {
  return namespace ? `${namespace}/${name}` : name;
}

/**
 * @param onHandlerError called with the error of a handler; the other handlers are called too
 * @param transform changes each object before it is stored
 */
export function createStore<T extends KubeObject>(
  onHandlerError: (error: unknown) => void,
  transform: (object: T) => T = (object) => object,
): WritableStore<T> {
  let objects = new Map<string, T>();
  const handlers = new Set<ChangeHandler<T>>();
  const { promise: synced, resolve } = Promise.withResolvers<void>();
  let hasSynced = false;
  /** Written objects that the watch has not brought yet. The second list without one removes it. */
  const aheadOfWatch = new Map<string, { readonly version: string | undefined; readonly isMissedByList: boolean }>();
  /** The latest version of a list or an event. An older object that is not in the store was deleted. */
  let seenVersion: string | undefined;
  const saw = (version: string | undefined) => {
    if (seenVersion === undefined || isLaterVersion(version, seenVersion)) seenVersion = version;
  };
  /** True for an event that is older than a write in the store. */
  const isBehind = ({ metadata: { resourceVersion } }: T, name: string) => {
    if (isLaterVersion(aheadOfWatch.get(name)?.version, resourceVersion)) return true;
    aheadOfWatch.delete(name);
    return false;
  };
  const put = (given: T) => {
    const previous = objects.get(key(given));
    if (previous !== undefined && isSame(previous, given)) return;
    const object = deepFreeze(transform(given));
    objects.set(key(object), object);
    publish(changesBetween(previous, object));
  };
  const key = ({ metadata }: T) => keyOf(metadata.name ?? "", metadata.namespace);

  const call = (handler: ChangeHandler<T>, change: Change<T>) => {
    try {
      handler(change);
    } catch (error) {
      onHandlerError(error);
    }
  };
  const publish = (changes: readonly Change<T>[]) => {
    for (const change of changes) for (const handler of [...handlers]) call(handler, change);
  };

  return {
    synced,
    get hasSynced() {
      return hasSynced;
    },
    get size() {
      return objects.size;
    },
    get: (name, namespace) => objects.get(keyOf(name, namespace)),
    list: (namespace) => {
      const all = [...objects.values()];
      return namespace === undefined ? all : all.filter(({ metadata }) => metadata.namespace === namespace);
    },
    onChange(handler) {
      const own: ChangeHandler<T> = (change) => handler(change); // the same function may be registered twice
      for (const object of [...objects.values()]) call(own, { type: "added", object });
      handlers.add(own);
      return () => void handlers.delete(own);
    },
    wrote(object) {
      const { resourceVersion } = object.metadata;
      const previous = objects.get(key(object));
      if (!hasSynced || !isLaterVersion(resourceVersion, previous?.metadata.resourceVersion ?? seenVersion)) return;
      aheadOfWatch.set(key(object), { version: resourceVersion, isMissedByList: false });
      put(object);
    },
    replace(next, version) {
      const old = objects;
      objects = new Map();
      saw(version);
      for (const object of next) {
        const known = old.get(key(object));
        objects.set(key(object), known !== undefined && isSame(known, object) ? known : deepFreeze(transform(object)));
      }
      for (const [name, { version: written, isMissedByList }] of aheadOfWatch) {
        const previous = old.get(name);
        if (previous !== undefined && isLaterVersion(written, version) && !isMissedByList) {
          objects.set(name, previous);
          aheadOfWatch.set(name, { version: written, isMissedByList: true });
        } else aheadOfWatch.delete(name);
      }
      const changes: Change<T>[] = [];
      for (const [name, object] of old) if (!objects.has(name)) changes.push({ type: "deleted", object });
      for (const [name, object] of objects) changes.push(...changesBetween(old.get(name), object));
      publish(changes);
      hasSynced = true;
      resolve();
    },
    upsert(object) {
      saw(object.metadata.resourceVersion);
      if (!isBehind(object, key(object))) put(object);
    },
    remove(object) {
      saw(object.metadata.resourceVersion);
      const previous = objects.get(key(object));
      if (previous === undefined || (!sameUid(previous, object) && isBehind(object, key(object)))) return;
      aheadOfWatch.delete(key(object));
      objects.delete(key(object));
      publish([{ type: "deleted", object: deepFreeze(transform(object)) }]); // the event has the newest state of the object
    },
  };
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  return (
    a === b ||
    (a.metadata.resourceVersion !== undefined && a.metadata.resourceVersion === b.metadata.resourceVersion && sameUid(a, b))
  );
}

function sameUid(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid;
}

// An object of the same name with another uid is another object: the old one was deleted between two lists.
function changesBetween<T extends KubeObject>(previous: T | undefined, object: T): Change<T>[] {
  if (previous === undefined) return [{ type: "added", object }];
  if (isSame(previous, object)) return [];
  if (sameUid(previous, object)) return [{ type: "updated", object, previous }];
  return [
    { type: "deleted", object: previous },
    { type: "added", object },
  ];
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
  return value;
}

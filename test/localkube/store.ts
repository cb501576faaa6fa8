// The objects, their history, and the one resourceVersion counter: etcd and the watch cache in one. Pure and synchronous: no
// clock, no I/O.
//
// Each write gets the next version. The history of a resource is in version order without gaps. Listeners are called in version
// order, after the write is visible.
import type { StoredObject } from "./model/object.ts";

export interface StoreEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly version: number;
  /** For DELETED: the last state, with the version of the deletion. */
  readonly object: StoredObject;
  readonly previous?: StoredObject;
}

export type StoreListener = (resource: string, event: StoreEvent) => void;

interface Collection {
  readonly objects: Map<string, StoredObject>;
  /** Keys in order; undefined after a key was added or removed. */
  sorted?: readonly string[] | undefined;
  readonly history: StoreEvent[];
  /** The history no longer has the events up to and including this version. */
  compacted: number;
  readonly listeners: Set<(event: StoreEvent) => void>;
}

export interface StoreOptions {
  /** How many events are kept for each resource; the default is 5000. */
  readonly historySize?: number;
}

/** The key of an object within its resource: "namespace/name", with an empty namespace when cluster-scoped. */
function objectKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ""}/${name}`;
}

export class Store {
  readonly #historySize: number;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<StoreListener>();
  #version = 1;
  /** The history of a new collection begins at this version. */
  #floor = 0;

  constructor(options: StoreOptions = {}) {
    this.#historySize = options.historySize ?? 5000;
  }

  /** The version of the last write. */
  get version(): number {
    return this.#version;
  }

  get(resource: string, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#collections.get(resource)?.objects.get(objectKey(namespace, name));
  }

  /** The names of all resources that ever had an object. */
  resources(): string[] {
    return [...this.#collections.keys()];
  }

  /** The current keys and objects in key order. */
  entries(resource: string): [string, StoredObject][] {
    const collection = this.#collection(resource);
    collection.sorted ??= [...collection.objects.keys()].sort(byKey);
    return collection.sorted.map((key) => [key, collection.objects.get(key) as StoredObject]);
  }

  /** The keys and objects at `version`; undefined if the history does not reach back so far. */
  entriesAt(resource: string, version: number): [string, StoredObject][] | undefined {
    const collection = this.#collection(resource);
    if (version < collection.compacted) return undefined;
    const newer = collection.history.filter((event) => event.version > version);
    if (newer.length === 0) return this.entries(resource);
    const objects = new Map(collection.objects);
    for (const event of newer.reverse()) {
      const key = objectKey(event.object.metadata.namespace, event.object.metadata.name);
      if (event.previous === undefined) objects.delete(key);
      else objects.set(key, event.previous);
    }
    return [...objects].sort(([a], [b]) => byKey(a, b));
  }

  /** The events after `version`; undefined if the history does not reach back so far. */
  eventsSince(resource: string, version: number): readonly StoreEvent[] | undefined {
    const collection = this.#collection(resource);
    if (version < collection.compacted) return undefined;
    return collection.history.filter((event) => event.version > version);
  }

  /** Writes `object` under its namespace and name with the next version. Returns the stored object. */
  put(resource: string, object: StoredObject): StoredObject {
    const collection = this.#collection(resource);
    const version = ++this.#version;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    const key = objectKey(stored.metadata.namespace, stored.metadata.name);
    const previous = collection.objects.get(key);
    collection.objects.set(key, stored);
    if (previous === undefined) collection.sorted = undefined;
    this.#emit(resource, collection, {
      type: previous === undefined ? "ADDED" : "MODIFIED",
      version,
      object: stored,
      ...(previous === undefined ? {} : { previous }),
    });
    return stored;
  }

  /** Removes an object. Returns its last state with the version of the deletion. */
  remove(resource: string, namespace: string | undefined, name: string): StoredObject | undefined {
    const collection = this.#collection(resource);
    const key = objectKey(namespace, name);
    const previous = collection.objects.get(key);
    if (previous === undefined) return undefined;
    const version = ++this.#version;
    const object = { ...previous, metadata: { ...previous.metadata, resourceVersion: String(version) } };
    collection.objects.delete(key);
    collection.sorted = undefined;
    this.#emit(resource, collection, { type: "DELETED", version, object, previous });
    return object;
  }

  /** Calls `listener` for each later event of one resource. Returns the function that stops it. */
  listen(resource: string, listener: (event: StoreEvent) => void): () => void {
    const { listeners } = this.#collection(resource);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Calls `listener` for each later event of every resource. Returns the function that stops it. */
  listenAll(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Drops the history of every resource, as etcd's compaction does. Older continue tokens and watches answer 410. */
  compact(): void {
    this.#floor = this.#version;
    for (const collection of this.#collections.values()) {
      collection.history.length = 0;
      collection.compacted = this.#version;
    }
  }

  #emit(resource: string, collection: Collection, event: StoreEvent): void {
    collection.history.push(event);
    // Large cuts keep the cost of a write constant.
    if (collection.history.length > this.#historySize * 1.25) {
      const cut = collection.history.splice(0, collection.history.length - this.#historySize);
      collection.compacted = cut.at(-1)?.version ?? collection.compacted;
    }
    for (const listener of collection.listeners) listener(event);
    for (const listener of this.#listeners) listener(resource, event);
  }

  #collection(resource: string): Collection {
    let collection = this.#collections.get(resource);
    if (collection === undefined) {
      collection = { objects: new Map(), history: [], compacted: this.#floor, listeners: new Set() };
      this.#collections.set(resource, collection);
    }
    return collection;
  }
}

function byKey(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

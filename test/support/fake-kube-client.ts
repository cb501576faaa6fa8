// An in-memory KubeClient for unit tests: versions and conflicts, lists, watches, merge patches, applies and finalizers. It has
// only the functions that the runtime uses; localkube is the full API server. Tests inject failures through `before` and `endWatches`.
import { type ObjectRef, objectPath, type Resource } from "../../src/kube/client/resource.ts";
import type { KubeClient, Patch, PatchOptions, WatchEvent } from "../../src/kube/client/types.ts";
import { StatusError } from "../../src/kube/status.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { isDeepEqual } from "../../src/runtime/merge-patch.ts";
import { createFakeApply } from "./fake-apply.ts";

export interface FakeKubeClient extends KubeClient {
  /** Called before each call. An error that it throws fails the call. */
  before: (call: FakeCall) => void | Promise<void>;
  readonly calls: FakeCall[];
  /** Ends all watches, normally or with an error. */
  endWatches(error?: unknown): void;
  /** Stores an object like the API server, with a new version and a watch event. */
  put<T extends KubeObject>(resource: Resource<T>, object: T): T;
  remove(resource: Resource, ref: ObjectRef): void;
  read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): T | undefined;
}

export interface FakeCall {
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
}

type Json = Readonly<Record<string, unknown>>;

interface Watcher {
  readonly resource: string;
  readonly namespace: string;
  send(event: WatchEvent<KubeObject>): void;
  end(error?: unknown): void;
}

export function createFakeKubeClient(): FakeKubeClient {
  const objects = new Map<string, { resource: string; object: KubeObject }>();
  const log: { version: number; resource: string; event: WatchEvent<KubeObject> }[] = [];
  const watchers = new Set<Watcher>();
  const calls: FakeCall[] = [];
  const applies = createFakeApply();
  let version = 100;
  let uids = 0;

  const call = async (verb: string, resource: Resource, name = "", signal?: AbortSignal) => {
    signal?.throwIfAborted();
    const made = { verb, resource: resource.resource, name, signal };
    calls.push(made);
    await client.before(made);
    signal?.throwIfAborted();
  };
  const publish = (resource: Resource, event: WatchEvent<KubeObject>) => {
    log.push({ version, resource: resource.resource, event });
    for (const watcher of watchers) if (watcher.resource === resource.resource) watcher.send(event);
  };
  const pathOf = (resource: Resource, { metadata }: KubeObject) =>
    objectPath(resource, { ...metadata, name: metadata.name ?? "" });
  const find = (resource: Resource, ref: ObjectRef): KubeObject => {
    const entry = objects.get(objectPath(resource, ref));
    if (entry === undefined) throw new StatusError("NotFound", `${resource.resource} "${ref.name}" not found`);
    return entry.object;
  };
  const put = <T extends KubeObject>(resource: Resource<T>, object: T): T => {
    const path = pathOf(resource, object);
    const old = objects.get(path)?.object;
    version++;
    const metadata = { ...object.metadata, uid: old?.metadata.uid ?? `uid-${++uids}`, resourceVersion: String(version) };
    const stored = structuredClone({ kind: resource.kind, ...object, metadata });
    objects.set(path, { resource: resource.resource, object: stored });
    publish(resource, { type: old === undefined ? "ADDED" : "MODIFIED", object: stored });
    return structuredClone(stored) as T;
  };
  const check = (
    resource: Resource,
    current: KubeObject,
    given: { readonly resourceVersion?: string; readonly uid?: string },
  ) => {
    const stale = given.resourceVersion !== undefined && given.resourceVersion !== current.metadata.resourceVersion;
    if (stale || (given.uid !== undefined && given.uid !== current.metadata.uid))
      throw new StatusError("Conflict", `${resource.resource}: modified`);
  };
  const update = async <T extends KubeObject>(resource: Resource<T>, object: T, signal?: AbortSignal): Promise<T> => {
    await call("update", resource, object.metadata.name, signal);
    check(resource, find(resource, { ...object.metadata, name: object.metadata.name ?? "" }), object.metadata);
    return put(resource, object);
  };

  /** Stores the result of a write. A deleted object is removed with its last finalizer. */
  const keepOrRemove = <T extends KubeObject>(resource: Resource<T>, object: T): T => {
    const { metadata } = object;
    if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return put(resource, object);
    client.remove(resource, { ...metadata, name: metadata.name ?? "" });
    return object;
  };

  const client: FakeKubeClient = {
    before: () => {},
    calls,
    put,
    read: <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) =>
      objects.get(objectPath(resource, ref))?.object as T | undefined,
    remove(resource, ref) {
      const object = find(resource, ref);
      objects.delete(objectPath(resource, ref));
      version++;
      publish(resource, {
        type: "DELETED",
        object: { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } },
      });
    },
    endWatches(error) {
      for (const watcher of [...watchers]) watcher.end(error);
    },
    async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: { signal?: AbortSignal | undefined } = {}) {
      await call("get", resource, ref.name, options.signal);
      return structuredClone(find(resource, ref)) as T;
    },
    async list<T extends KubeObject>(
      resource: Resource<T>,
      options: { signal?: AbortSignal | undefined; namespace?: string | undefined } = {},
    ) {
      await call("list", resource, "", options.signal);
      const items = [...objects.values()]
        .filter(
          (entry) =>
            entry.resource === resource.resource && (!options.namespace || entry.object.metadata.namespace === options.namespace),
        )
        .map(({ object }) => structuredClone(object) as T);
      return { metadata: { resourceVersion: String(version) }, items };
    },
    async create(resource, object, options = {}) {
      await call("create", resource, object.metadata.name, options.signal);
      if (objects.has(pathOf(resource, object))) throw new StatusError("AlreadyExists", `${resource.resource}: already exists`);
      return put(resource, object);
    },
    update: (resource, object, options = {}) => update(resource, object, options.signal),
    async patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: Patch, options: PatchOptions = {}) {
      await call("patch", resource, ref.name, options.signal);
      const body = patch.body as Partial<KubeObject>;
      const path = objectPath(resource, ref, options.subresource);
      const stored = objects.get(objectPath(resource, ref))?.object;
      if (patch.type === "apply" && stored === undefined && options.subresource === undefined) {
        if (body.metadata?.uid !== undefined) throw new StatusError("Conflict", `${resource.resource}: uid mismatch`);
        return put(resource, applies.apply(path, patch.fieldManager ?? "test", { metadata: ref }, body as Json) as unknown as T);
      }
      const current = find(resource, ref);
      check(resource, current, body.metadata ?? {});
      if (patch.type !== "apply") return keepOrRemove(resource, mergePatch(current, body) as T);
      const next = applies.apply(path, patch.fieldManager ?? "test", current as unknown as Json, body as Json);
      if (isDeepEqual(next, current)) return structuredClone(current) as T; // like the API server: no new version
      return keepOrRemove(resource, next as unknown as T);
    },
    async delete(resource, ref, options = {}) {
      await call("delete", resource, ref.name, options.signal);
      const object = find(resource, ref);
      if ((object.metadata.finalizers ?? []).length === 0) client.remove(resource, ref);
      else put(resource, { ...object, metadata: { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
    },
    async *watch<T extends KubeObject>(
      resource: Resource<T>,
      options: { signal?: AbortSignal | undefined; resourceVersion?: string; namespace?: string | undefined } = {},
    ) {
      await call("watch", resource, "", options.signal);
      const queue: WatchEvent<KubeObject>[] = [];
      let ended: { error?: unknown } | undefined;
      let wake = () => {};
      const watcher: Watcher = {
        resource: resource.resource,
        namespace: options.namespace ?? "",
        send(event) {
          if (watcher.namespace === "" || event.object.metadata.namespace === watcher.namespace)
            queue.push(structuredClone(event));
          wake();
        },
        end(error) {
          ended = { error };
          wake();
        },
      };
      for (const entry of log)
        if (entry.resource === resource.resource && entry.version > Number(options.resourceVersion)) watcher.send(entry.event);
      watchers.add(watcher);
      const onAbort = () => watcher.end(options.signal?.reason);
      options.signal?.addEventListener("abort", onAbort, { once: true });
      try {
        for (;;) {
          const event = queue.shift();
          if (event !== undefined) yield event as WatchEvent<T>;
          else if (ended !== undefined) {
            if (ended.error !== undefined) throw ended.error;
            return;
          } else await new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        watchers.delete(watcher);
        options.signal?.removeEventListener("abort", onAbort);
      }
    },
    createSubresource: async () => undefined,
    request: async () => undefined,
    close: async () => client.endWatches(),
  };
  return client;
}

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === "object" && target !== null && !Array.isArray(target) ? { ...(target as Record<string, unknown>) } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

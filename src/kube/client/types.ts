import type { KubeList, KubeObject } from "../types.ts";
import type { ObjectRef, Resource } from "./resource.ts";
import type { TransportRequest } from "./transport.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Upper bound of each HTTP exchange in milliseconds; the default is 30,000. */
  readonly timeoutMs?: number | undefined;
  /** How often a 429 or 503 with Retry-After is retried; the default is the client's. */
  readonly maxRetries?: number | undefined;
}

export interface SelectorOptions {
  /** All namespaces if absent or "". */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends CallOptions, SelectorOptions {
  /** Objects on one page; the default is 500; 0 requests everything on one page. */
  readonly pageSize?: number;
  /** Absent or "": the newest state. "0": any state in the server's cache. */
  readonly resourceVersion?: string;
}

export interface WatchOptions extends SelectorOptions {
  readonly signal?: AbortSignal | undefined;
  /** Events after this version. Absent: first the current objects as ADDED. */
  readonly resourceVersion?: string;
  /** After how many seconds the server ends the stream; the default is 300. */
  readonly timeoutSeconds?: number;
  /** The watch fails after this time without a byte; default 90,000. A bookmark comes each minute. */
  readonly silenceMs?: number | undefined;
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: KubeObject };

export interface WriteOptions extends CallOptions {
  readonly dryRun?: boolean;
}

/**
 * An apply is forced by default, since a controller owns the fields that it applies. Its `fieldManager` is by
 * default the user agent up to its first slash, as the API server derives it for all other writes.
 */
export type Patch =
  | { readonly type: "merge"; readonly body: unknown }
  | { readonly type: "json"; readonly body: readonly JsonPatchOperation[] }
  | { readonly type: "apply"; readonly body: unknown; readonly fieldManager?: string };

export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "test" | "move" | "copy";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

export interface PatchOptions extends WriteOptions {
  readonly subresource?: string;
}

export interface DeleteOptions extends CallOptions {
  readonly gracePeriodSeconds?: number;
  /** Deletes the object only if it has this uid or version. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

export interface RawRequest extends CallOptions {
  readonly method: TransportRequest["method"];
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** A description of the operation, for error messages; the default is method and path. */
  readonly doing?: string;
}

/**
 * A typed client of the Kubernetes API. It throws refusals as StatusError, all else as MeshError:
 * `KUBE_UNREACHABLE`, `KUBE_TIMEOUT`, `KUBE_MALFORMED`, `WATCH_TRUNCATED`, `WATCH_MALFORMED`, or the signal's
 * reason. It retries a 429 or 503 with Retry-After a few times.
 */
export interface KubeClient {
  /** Any request; resolves with the parsed JSON of the answer. */
  request(request: RawRequest): Promise<unknown>;
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions): Promise<T>;
  /** All objects, page by page. A list with an expired continuation starts again. */
  list<T extends KubeObject>(resource: Resource<T>, options?: ListOptions): Promise<KubeList<T>>;
  create<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  /** Replaces the object, if its resourceVersion is still current. */
  update<T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions): Promise<T>;
  patch<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, patch: Patch, options?: PatchOptions): Promise<T>;
  delete(resource: Resource, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
  /** Creates a subresource of an object: `eviction` of a pod, `token` of a service account. */
  createSubresource(
    resource: Resource,
    ref: ObjectRef,
    subresource: string,
    body: unknown,
    options?: CallOptions,
  ): Promise<unknown>;
  /** Yields events until the server ends the stream. Throws when something fails. */
  watch<T extends KubeObject>(resource: Resource<T>, options?: WatchOptions): AsyncIterable<WatchEvent<T>>;
  /** Ends every exchange and closes the connections. */
  close(): Promise<void>;
}

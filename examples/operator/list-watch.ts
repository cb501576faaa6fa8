// A cache of one kind, kept by list and watch. Invariant: no change is lost: it lists again after every end of the stream, except an
// ordinary one and the library's timeout. (The library's Watch ends a stream after 30 s of silence, and drops an incomplete last line;
// then the watch continues from the last version.)
import { setTimeout as delay } from "node:timers/promises";
import type { KubernetesListObject, KubernetesObject, Watch } from "@kubernetes/client-node";
import { keyOf } from "./foo.ts";
import type { Log } from "./log.ts";

export interface ListWatchOptions<T extends KubernetesObject> {
  readonly watch: Pick<Watch, "watch">;
  /** "/api/v1/configmaps" */
  readonly path: string;
  list(): Promise<KubernetesListObject<T>>;
  /** Called for every new, changed or deleted object, after the change of the cache. Must not throw. */
  onChange(object: T): void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const RETRY_BASE_MS = 200;
const RETRY_MAX_MS = 10_000;

/** Fills `cache` by key and keeps it up to date until the signal fires. */
export async function listWatch<T extends KubernetesObject>(cache: Map<string, T>, options: ListWatchOptions<T>): Promise<void> {
  const { path, log, signal } = options;
  let failures = 0;
  // Empty: list first.
  let version = "";
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      if (version === "") version = await relist(cache, options);
      version = await follow(cache, version, options);
      failures = isShort(startedAt) ? failures + 1 : 0;
    } catch (error) {
      if (signal.aborted) return;
      version = "";
      // An expired version is normal, unless the next one expires at once too.
      failures = isGone(error) && !isShort(startedAt) ? 0 : failures + 1;
      log.error("watch ended, listing again", error, { path });
    }
    // If the server ends every stream at once, the operator must not retry in a tight loop.
    const delayMs = failures === 0 ? 0 : Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
    await delay(delayMs, undefined, { signal }).catch(() => undefined);
  }
}

function isShort(startedAt: number): boolean {
  return performance.now() - startedAt < 1000;
}

async function relist<T extends KubernetesObject>(
  cache: Map<string, T>,
  { list, onChange }: ListWatchOptions<T>,
): Promise<string> {
  const { metadata, items } = await list();
  const gone = new Map(cache);
  for (const object of items) {
    const key = keyOf(object);
    const isNew = gone.get(key)?.metadata?.resourceVersion !== object.metadata?.resourceVersion;
    gone.delete(key);
    cache.set(key, object);
    if (isNew) onChange(object);
  }
  for (const [key, object] of gone) {
    cache.delete(key);
    onChange(object);
  }
  return metadata?.resourceVersion ?? "";
}

// Reads one stream to its end. Resolves with the version to continue from.
function follow<T extends KubernetesObject>(
  cache: Map<string, T>,
  from: string,
  { watch, path, onChange, signal }: ListWatchOptions<T>,
): Promise<string> {
  let version = from;
  let failure: unknown;
  const onEvent = (type: string, object: T) => {
    if (type === "ERROR") {
      failure = object;
      return;
    }
    version = object.metadata?.resourceVersion ?? version;
    if (type === "BOOKMARK") return;
    if (type === "DELETED") cache.delete(keyOf(object));
    else cache.set(keyOf(object), object);
    onChange(object);
  };
  return new Promise((resolve, reject) => {
    let stream: AbortController | undefined;
    const stop = () => stream?.abort();
    const done = (error: unknown) => {
      signal.removeEventListener("abort", stop);
      if (failure !== undefined) reject(statusError(failure));
      else if (error && !isTimeout(error)) reject(error);
      else resolve(version);
    };
    signal.addEventListener("abort", stop, { once: true });
    watch.watch(path, { resourceVersion: from, allowWatchBookmarks: true }, onEvent, done).then((opened) => {
      stream = opened;
      if (signal.aborted) stop();
    }, done);
  });
}

// The object of an ERROR event is a Status.
function statusError(object: unknown): Error & { statusCode?: number } {
  const { code, message } = object as { readonly code?: number; readonly message?: string };
  return Object.assign(new Error(message ?? "watch error"), code === undefined ? {} : { statusCode: code });
}

function isGone(error: unknown): boolean {
  const { statusCode, code } = error as { readonly statusCode?: number; readonly code?: number };
  return statusCode === 410 || code === 410;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

// Keeps a store equal to a collection of the API server with a list and then watches. Invariant: no event is
// lost or invented, and after each list the store equals the list. reflector-state.ts makes the decisions.
import { backoffMs, sleep } from "../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { ProcessContext } from "../base/process-context.ts";
import { type Resource, resourceName } from "../kube/client/resource.ts";
import { retryAfterMs } from "../kube/client/response-error.ts";
import type { KubeClient, SelectorOptions } from "../kube/client/types.ts";
import { isStatus, StatusError } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import { initialReflectorState, nextReflectorState, type ReflectorInput, type ReflectorState } from "./reflector-state.ts";
import { createStore, type Store } from "./store.ts";

export interface ReflectorOptions<T extends KubeObject> extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly client: Pick<KubeClient, "list" | "watch">;
  readonly resource: Resource<T>;
  readonly selectors?: SelectorOptions;
  /** Default: dropUnreadMetadata. */
  readonly transform?: (object: T) => T;
  readonly silenceMs?: number;
}

export interface Reflector<T extends KubeObject> extends Runnable {
  readonly store: Store<T>;
}

const BACKOFF = { baseMs: 800, maxMs: 30_000 };
/** Watches last one to two times as long, at random, so that they do not end together (as in client-go). */
const MIN_WATCH_SECONDS = 300;
/** A watch that lasts this long counts as working, even without an event. */
const HEALTHY_AFTER_MS = 10_000;

/** `start` resolves immediately; wait for `store.synced`. */
export function createReflector<T extends KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { resource, clock, random } = options;
  const log = options.log.child({ resource: resourceName(resource), ...options.selectors });
  const store = createStore<T>(
    (error) => log.error({ err: error }, "store handler failed"),
    options.transform ?? dropUnreadMetadata,
  );
  const stopController = new AbortController();
  let runEnd: Promise<void> | undefined;

  async function step(state: ReflectorState, signal: AbortSignal): Promise<ReflectorInput> {
    switch (state.kind) {
      case "listing":
        return list(signal);
      case "watching":
        return watch(state.resourceVersion, signal);
      case "waiting":
        await sleep(clock, waitMsOf(state), signal).catch(() => {});
        return { kind: "waited" };
      case "stopped":
        return { kind: "stop" };
      default:
        return state satisfies never;
    }
  }

  function waitMsOf({ failures, retryAfterMs: askedMs = 0 }: Extract<ReflectorState, { kind: "waiting" }>): number {
    return Math.max(backoffMs(failures - 1, BACKOFF, random), Math.min(askedMs, BACKOFF.maxMs));
  }

  async function list(signal: AbortSignal): Promise<ReflectorInput> {
    try {
      const { items, metadata } = await options.client.list(resource, { ...options.selectors, signal });
      if (signal.aborted) return { kind: "stop" };
      // Without a version a watch would lose the events since the list.
      if (!metadata.resourceVersion) throw new MeshError("KUBE_MALFORMED", "listing: the list has no resourceVersion");
      store.replace(items, metadata.resourceVersion);
      return { kind: "listed", resourceVersion: metadata.resourceVersion };
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "list failed");
      return { kind: "list-failed" };
    }
  }

  async function watch(from: string, signal: AbortSignal): Promise<ReflectorInput> {
    const startedMs = clock.monotonicMs();
    let resourceVersion = from;
    let hasEvent = false;
    const healthy = () => hasEvent || clock.monotonicMs() - startedMs >= HEALTHY_AFTER_MS;
    try {
      const events = options.client.watch(resource, {
        ...options.selectors,
        resourceVersion: from,
        timeoutSeconds: Math.round(MIN_WATCH_SECONDS * (1 + random())),
        silenceMs: options.silenceMs,
        signal,
      });
      for await (const { type, object } of events) {
        if (signal.aborted) break;
        if (type === "DELETED") store.remove(object);
        else if (type !== "BOOKMARK") store.upsert(object);
        resourceVersion = object.metadata.resourceVersion ?? resourceVersion;
        hasEvent = true;
      }
      return { kind: "watch-ended", resourceVersion, healthy: healthy(), clean: true };
    } catch (error) {
      if (needsList(error)) {
        log.info({ err: error, resourceVersion }, "watch expired, listing again");
        return { kind: "watch-expired", healthy: healthy() };
      }
      const askedMs = error instanceof StatusError ? retryAfterMs(error) : undefined;
      // An API server that starts, or that has just got the resource's CRD, refuses watches for a second.
      if (askedMs !== undefined) log.info({ reason: errorMessage(error), waitMs: askedMs }, "watch refused for now");
      else if (!signal.aborted) log.warn({ err: error }, "watch failed");
      return { kind: "watch-ended", resourceVersion, healthy: healthy(), clean: false, retryAfterMs: askedMs };
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    let state: ReflectorState = initialReflectorState;
    while (state.kind !== "stopped") {
      const input: ReflectorInput = await step(state, signal);
      state = nextReflectorState(state, signal.aborted ? { kind: "stop" } : input);
    }
  }

  return {
    name: `reflector ${resourceName(resource)}`,
    store,
    async start(signal) {
      runEnd ??= run(AbortSignal.any([signal, stopController.signal]));
    },
    async stop() {
      stopController.abort();
      await runEnd;
    },
  };
}

/** True if the same watch would fail again. */
function needsList(error: unknown): boolean {
  return isStatus(error, "Expired", "Gone", "BadRequest", "Invalid") || isMeshError(error, "WATCH_MALFORMED");
}

/** The annotation with kubectl's copy of the whole object. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** Removes what no reconciler reads. managedFields take a fifth of an operator's cache. */
export function dropUnreadMetadata<T extends KubeObject>(object: T): T {
  const { annotations } = object.metadata;
  const hasCopy = annotations?.[LAST_APPLIED] !== undefined;
  if (!("managedFields" in object.metadata) && !hasCopy) return object;
  const { managedFields: _, ...metadata } = object.metadata as KubeObject["metadata"] & { readonly managedFields?: unknown };
  if (!hasCopy) return { ...object, metadata };
  const { [LAST_APPLIED]: __, ...others } = annotations;
  return { ...object, metadata: { ...metadata, annotations: others } };
}

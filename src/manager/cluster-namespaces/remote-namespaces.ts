// The namespaces of a cluster whose API server a tenant chose, as a client for a reflector. Invariants: what the server sends costs at
// most so much memory and time; no error has words of the server, so they reach no log and no status.
import { type Clock, sleep } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { createTimeLimit } from "../../kube/client/exchange.ts";
import { acceptOf, apiVersionOf, collectionPath, formatQuery, type Resource } from "../../kube/client/resource.ts";
import type { KubeClient, WatchEvent, WatchOptions } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeList, KubeObject } from "../../kube/types.ts";
import { plainError } from "./plain-error.ts";
import { memoryOf, pageOf, plainNamespace, versionOf } from "./plain-namespace.ts";

/** As many as a home cluster is tested with, twice. */
export const MAX_NAMESPACES = 20_000;
/** Of an answer, or of all events of a watch. A page of ordinary namespaces has 150 KB. */
export const MAX_ANSWER_BYTES = 1024 * 1024;

const PAGE_SIZE = 125;
/** A page may have fewer items than were asked for, but a list ends. */
const MAX_PAGES = (2 * MAX_NAMESPACES) / PAGE_SIZE;
const LIST_LIMIT_MS = 120_000;
/** Between two lists, and between two watches: an API server that ends each at once may not occupy the manager. */
const LIST_PAUSE_MS = 5_000;
const WATCH_PAUSE_MS = 1_000;
/** Then the events of a second wait, and the server's socket is not read. */
const MAX_EVENTS_PER_SECOND = 1_000;

interface RemoteOptions {
  /** Asked before each request, since the credentials may be new. */
  readonly client: () => Pick<KubeClient, "request" | "watch">;
  readonly clock: Clock;
  /** Gets the error of each failure without words of the server; undefined: the server answers. */
  readonly heard: (error: MeshError | undefined) => void;
  /** Gets the memory of a list that grows, in bytes, and 0 at its end. */
  readonly listing?: (bytes: number) => void;
}

export function createRemoteNamespaces({
  client,
  clock,
  heard,
  listing = () => undefined,
}: RemoteOptions): Pick<KubeClient, "list" | "watch"> {
  const lists = createPause(clock, LIST_PAUSE_MS);
  const watches = createPause(clock, WATCH_PAUSE_MS);

  const failed = (error: unknown, signal: AbortSignal | undefined): unknown => {
    if (signal?.aborted) return error;
    const plain = plainError(error);
    heard(plain);
    return plain;
  };

  async function listAll(resource: Resource, signal: AbortSignal): Promise<KubeList<KubeObject>> {
    const items: KubeObject[] = [];
    let bytes = 0;
    let resourceVersion: string | undefined;
    let next = "";
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const path = collectionPath(resource) + formatQuery({ limit: PAGE_SIZE, continue: next });
      const answer = await client().request({
        method: "GET",
        path,
        headers: { accept: acceptOf(resource, "list") },
        signal,
        maxRetries: 0,
      });
      const page = pageOf(answer);
      for (const item of page.items.flatMap((each) => plainNamespace(each, resource))) {
        items.push(item);
        bytes += memoryOf(item);
      }
      listing(bytes);
      signal.throwIfAborted();
      if (items.length > MAX_NAMESPACES) break;
      resourceVersion ??= page.resourceVersion;
      next = page.next;
      if (next === "") return { metadata: resourceVersion === undefined ? {} : { resourceVersion }, items };
    }
    throw new MeshError("TOO_MANY_NAMESPACES", `listing namespaces: there are more than ${MAX_NAMESPACES}`);
  }

  async function* watch(resource: Resource, options: WatchOptions): AsyncGenerator<WatchEvent<KubeObject>> {
    const { signal } = options;
    await watches.wait(signal);
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    let second = 0;
    let events = 0;
    try {
      for await (const event of client().watch(resource, options)) {
        heard(undefined);
        const now = Math.floor(clock.monotonicMs() / 1_000);
        events = now === second ? events + 1 : 1;
        second = now;
        if (events > MAX_EVENTS_PER_SECOND) await sleep(clock, 1_000, signal);
        const metadata = { resourceVersion: versionOf(event.object.metadata) };
        if (event.type === "BOOKMARK") yield { type: "BOOKMARK", object: { ...type, metadata } as KubeObject };
        else for (const object of plainNamespace(event.object, resource)) yield { type: event.type, object };
      }
      heard(undefined);
    } catch (error) {
      throw failed(error, signal);
    }
  }

  return {
    async list<T extends KubeObject>(resource: Resource<T>, options: { readonly signal?: AbortSignal | undefined } = {}) {
      await lists.wait(options.signal);
      using limit = createTimeLimit(clock, LIST_LIMIT_MS, "listing namespaces", options.signal);
      try {
        const list = await listAll(resource, limit.signal);
        heard(undefined);
        return list as KubeList<T>;
      } catch (error) {
        throw failed(error, options.signal);
      } finally {
        listing(0);
      }
    },
    watch: (resource, options = {}) => watch(resource, options) as AsyncIterable<WatchEvent<never>>,
  };
}

/** Waits until the last use is `pauseMs` ago. */
function createPause(clock: Clock, pauseMs: number) {
  let nextMs = Number.NEGATIVE_INFINITY;
  return {
    async wait(signal: AbortSignal | undefined): Promise<void> {
      const waitMs = nextMs - clock.monotonicMs();
      nextMs = Math.max(nextMs, clock.monotonicMs()) + pauseMs;
      if (waitMs > 0) await sleep(clock, waitMs, signal);
    },
  };
}

/** True if the server refuses the credentials, or what they may do. */
export function isRefusal(error: MeshError): boolean {
  return error instanceof StatusError && (error.status.code === 401 || error.status.code === 403);
}

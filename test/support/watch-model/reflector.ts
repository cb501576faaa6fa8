// A model of client-go's reflector: it lists, or watches with initial events, continues from the last version it read when a
// watch ends, and starts again upon a 410. Its connection may break in the middle of a stream.

import { type Clock, sleep } from "../../../src/base/clock.ts";
import type { Handler } from "../../../src/proxy/call/call.ts";
import type { SourceControl } from "../../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { callOf, textOf } from "../layer-call.ts";

/** client-go's reflector waits for this long at least before it lists again. */
const BACKOFF_MS = 800;

export interface SeenEvent {
  readonly type: string;
  readonly key: string;
  readonly namespace: string;
  readonly version: number;
}

interface WireEvent {
  readonly type: string;
  readonly object: { readonly metadata: Meta; readonly code?: number };
}
interface Meta {
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ReflectorKind {
  /** It requests initial events instead of a list. */
  readonly isWatchList: boolean;
  /** False only for one that lists. */
  readonly takesBookmarks: boolean;
}

export interface ModelReflector {
  /** The objects that it believes to exist, with their versions. */
  readonly state: ReadonlyMap<string, number>;
  readonly lists: number;
  /** Breaks the reflector's connection after this many more events of the current watch. */
  breakAfter(events: number): void;
}

/**
 * @param onEvent called with each event before it takes effect
 * @param onList called with the content of a list before it takes effect
 */
export function startReflector(
  send: Handler,
  clock: Clock,
  { isWatchList, takesBookmarks }: ReflectorKind,
  onEvent: (event: SeenEvent, before: ReadonlyMap<string, number>) => void,
  onList: (namespaces: ReadonlySet<string>) => void,
): ModelReflector {
  const state = new Map<string, number>();
  let lists = 0;
  let left = Number.POSITIVE_INFINITY;
  let cut: (() => void) | undefined;

  const list = async (): Promise<string> => {
    const reply = await send(callOf("GET", "/api/v1/pods"));
    if (reply.status !== 200) throw new Error(`list: ${reply.status}`);
    const { metadata, items } = JSON.parse(await textOf(reply)) as { metadata: Meta; items: { metadata: Meta }[] };
    lists++;
    onList(new Set(items.map((item) => item.metadata.namespace)));
    state.clear();
    for (const item of items)
      state.set(`${item.metadata.namespace}/${item.metadata.name}`, Number(item.metadata.resourceVersion));
    return metadata.resourceVersion;
  };

  /**
   * @param from undefined for a watch with initial events
   * @returns the version to continue from; undefined if it must list
   */
  const watch = async (from: string | undefined): Promise<string | undefined> => {
    const where = from === undefined ? "sendInitialEvents=true&resourceVersionMatch=NotOlderThan" : `resourceVersion=${from}`;
    const reply = await send(callOf("GET", `/api/v1/pods?watch=1&allowWatchBookmarks=${takesBookmarks}&${where}`));
    let version = from;
    let initial: Map<string, number> | undefined = from === undefined ? new Map() : undefined;
    left = Number.POSITIVE_INFINITY;
    const read = ({ type, object }: WireEvent): boolean => {
      if (type === "ERROR") {
        if (object.code !== 410) throw new Error(`watch: ${object.code}`);
        version = undefined;
        return false;
      }
      const { namespace, name, resourceVersion } = object.metadata;
      if (type !== "BOOKMARK") {
        const key = `${namespace}/${name}`;
        const store = initial ?? state;
        onEvent({ type, key, namespace, version: Number(resourceVersion) }, store);
        if (type === "DELETED") store.delete(key);
        else store.set(key, Number(resourceVersion));
      } else if (initial !== undefined && object.metadata.annotations?.["k8s.io/initial-events-end"] === "true") {
        state.clear();
        for (const [key, of] of initial) state.set(key, of);
        initial = undefined;
      }
      // Events before the end of the initial events are read again.
      if (initial === undefined) version = resourceVersion;
      left--;
      return left > 0;
    };
    await readEvents(reply, read, (end) => {
      cut = end;
    });
    return version;
  };

  const run = async () => {
    let version: string | undefined;
    for (let lists = 0; ; lists++) {
      if (version === undefined && lists > 0) await sleep(clock, BACKOFF_MS);
      version = version === undefined && !isWatchList ? await list() : await watch(version);
    }
  };
  void run();
  return {
    state,
    get lists() {
      return lists;
    },
    breakAfter(events) {
      left = events;
      if (events === 0) cut?.();
    },
  };
}

/** Reads until the stream ends, `read` returns false, or the connection breaks. */
function readEvents(reply: Reply, read: (event: WireEvent) => boolean, onOpen: (cut: () => void) => void): Promise<void> {
  if (reply.body === null) throw new Error("a watch without a body");
  if (reply.body instanceof Uint8Array) {
    for (const line of linesOf(reply.body)) if (!read(line)) break;
    return Promise.resolve();
  }
  const { body } = reply;
  return new Promise((resolve, reject) => {
    let over = false;
    let control: SourceControl | undefined;
    const stop = () => {
      if (over) return;
      over = true;
      control?.cancel(new Error("the connection is broken"));
      resolve();
    };
    control = body.open({
      write(chunk) {
        try {
          for (const event of linesOf(chunk)) {
            if (over) return false;
            if (!read(event)) stop();
          }
        } catch (error) {
          reject(error);
        }
        return !over;
      },
      end: () => {
        over = true;
        resolve();
      },
      abort: reject,
    });
    onOpen(stop);
  });
}

function linesOf(bytes: Uint8Array): WireEvent[] {
  const lines = Buffer.from(bytes).toString("utf8").trimEnd().split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as WireEvent);
}

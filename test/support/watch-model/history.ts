// A model of an API server with one resource and its whole history, for the model test of watches. It has lists now or at an
// exact version, watches that lag, and answers that wait for the script. It filters like kube-apiserver (simulated-server.ts).

import type { Call, Handler } from "../../../src/proxy/call/call.ts";
import type { ByteSink } from "../../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { jsonReply } from "../layer-call.ts";
import { type ServedObject, select } from "../simulated-server.ts";

export interface Change {
  /** "OTHER": of another resource, so that only the version grows. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "OTHER";
  readonly version: number;
  readonly object: ServedObject;
}

interface LiveWatch {
  readonly query: URLSearchParams;
  readonly sink: ByteSink;
  /** The number of changes that the watch has passed. */
  at: number;
}

export interface History {
  readonly handler: Handler;
  /** Creates or changes the object. */
  write(namespace: string, name: string): void;
  remove(namespace: string, name: string): void;
  /** Something of another resource is written, as leases are every few seconds. */
  tick(): void;
  /** The version of each existing object. */
  versions(): Map<string, number>;
  /** Sets whether requests wait for `answerOne`. */
  setSlow(slow: boolean): void;
  /** Answers the request that has waited for the longest time. */
  answerOne(): void;
  /** Moves the watch over this many changes. */
  deliver(watch: number, changes: number): void;
  /** Sends the watch a bookmark with its position. */
  bookmark(watch: number): void;
  /** From this call on, exact lists of all earlier versions are refused. */
  compact(): void;
  /** Ends the watch's connection. */
  breakWatch(watch: number): void;
  readonly openWatches: number;
}

const keyOf = ({ namespace, name }: ServedObject) => `${namespace}/${name}`;

export function createHistory(): History {
  const changes: Change[] = [];
  const watches: LiveWatch[] = [];
  const waiting: (() => void)[] = [];
  let isSlow = false;
  let compactedTo = 0;
  const head = () => changes.length + FIRST;
  const stateAt = (version: number) => {
    const state = new Map<string, Change>();
    for (const change of changes.slice(0, version - FIRST)) {
      if (change.type === "OTHER") continue;
      if (change.type === "DELETED") state.delete(keyOf(change.object));
      else state.set(keyOf(change.object), change);
    }
    return state;
  };
  const add = (type: Change["type"], namespace: string, name: string) =>
    changes.push({ type, version: head() + 1, object: { namespace, name } });
  const objectOf = ({ object, version }: Change) => ({ metadata: { ...object, resourceVersion: String(version) } });
  const send = (watch: LiveWatch, type: string, object: object) =>
    watch.sink.write(Buffer.from(`${JSON.stringify({ type, object: { kind: "Pod", apiVersion: "v1", ...object } })}\n`));
  const end = (watch: LiveWatch) => {
    const index = watches.indexOf(watch);
    if (index >= 0) watches.splice(index, 1);
  };

  const list = ({ info }: Call): Reply => {
    const exact = info.query.get("resourceVersionMatch") === "Exact" ? Number(info.query.get("resourceVersion")) : undefined;
    if (exact !== undefined && exact <= compactedTo) return jsonReply({ kind: "Status", code: 410 }, 410);
    const version = exact ?? head();
    const state = stateAt(version);
    const objects = [...state.values()].map(({ object }) => object);
    const items = select({ objects }, info.query, "namespace" in info ? info.namespace : "").flatMap((object) => {
      const change = state.get(keyOf(object));
      return change === undefined ? [] : [objectOf(change)];
    });
    return jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: String(version) }, items });
  };
  const sendInitialEvents = (live: LiveWatch) => {
    const state = stateAt(live.at + FIRST);
    for (const object of select({ objects: [...state.values()].map((change) => change.object) }, live.query)) {
      const change = state.get(keyOf(object));
      if (change !== undefined && watches.includes(live)) send(live, "ADDED", objectOf(change));
    }
    const annotations = { "k8s.io/initial-events-end": "true" };
    const metadata = { resourceVersion: String(live.at + FIRST), annotations };
    if (watches.includes(live)) send(live, "BOOKMARK", { metadata });
  };
  const watch = ({ info }: Call): Reply => ({
    status: 200,
    headers: { "content-type": "application/json" },
    body: {
      cancel: () => undefined,
      open(sink) {
        const isWhole = info.query.get("sendInitialEvents") === "true";
        const from = isWhole ? head() : Number(info.query.get("resourceVersion"));
        const live: LiveWatch = { query: info.query, sink, at: from - FIRST };
        watches.push(live);
        if (isWhole) queueMicrotask(() => sendInitialEvents(live));
        return { resume: () => undefined, cancel: () => end(live) };
      },
    },
  });

  return {
    async handler(call) {
      if (isSlow)
        await new Promise<void>((resolve, reject) => {
          waiting.push(resolve);
          call.signal.addEventListener("abort", () => reject(new Error("given up")));
        });
      return call.info.query.has("watch") ? watch(call) : list(call);
    },
    write: (namespace, name) => add(stateAt(head()).has(`${namespace}/${name}`) ? "MODIFIED" : "ADDED", namespace, name),
    remove(namespace, name) {
      if (stateAt(head()).has(`${namespace}/${name}`)) add("DELETED", namespace, name);
    },
    tick: () => void add("OTHER", "", ""),
    versions: () => new Map([...stateAt(head())].map(([key, { version }]) => [key, version])),
    setSlow(slow) {
      isSlow = slow;
      if (!slow) for (const answer of waiting.splice(0)) answer();
    },
    answerOne: () => waiting.shift()?.(),
    deliver(index, count) {
      const live = watches[index % Math.max(1, watches.length)];
      for (let left = count; left > 0 && live !== undefined && watches.includes(live) && live.at < changes.length; left--) {
        const change = changes[live.at++] as Change;
        if (change.type !== "OTHER" && select({ objects: [change.object] }, live.query).length > 0)
          send(live, change.type, objectOf(change));
      }
    },
    bookmark(index) {
      const live = watches[index % Math.max(1, watches.length)];
      if (live?.query.get("allowWatchBookmarks") !== "true") return;
      send(live, "BOOKMARK", { metadata: { resourceVersion: String(live.at + FIRST) } });
    },
    compact() {
      compactedTo = head() - 1;
    },
    breakWatch(index) {
      const live = watches[index % Math.max(1, watches.length)];
      if (live === undefined) return;
      end(live);
      live.sink.end();
    },
    get openWatches() {
      return watches.length;
    },
  };
}

// The first version. No version is 0.
const FIRST = 10;

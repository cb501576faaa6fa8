// A model of an API server: lists now or at an exact version, watches that lag, and answers that wait for the script. It filters like
// kube-apiserver (simulated-server.ts).
import type { Call, Handler, ResourceCall } from "../../../src/proxy/call/call.ts";
import type { ByteSink } from "../../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { bookmark, initialEvents, list, watchEvent } from "./answers.ts";
import type { History } from "./history.ts";

interface LiveWatch {
  readonly history: History;
  readonly call: Call;
  readonly sink: ByteSink;
  /** Initial events that are not sent yet. */
  readonly initial: object[];
  /** The version that the watch has passed. */
  at: number;
}

export interface ApiServer {
  readonly handler: Handler;
  /** Sets whether requests wait for `answerOne`. */
  setSlow(slow: boolean): void;
  /** Answers the request that has waited for the longest time. */
  answerOne(): void;
  /** Moves the watch over this many initial events or changes. */
  deliver(watch: number, changes: number): void;
  /** Sends the watch a bookmark with its position. */
  bookmark(watch: number): void;
  /** Ends the watch's connection. */
  breakWatch(watch: number): void;
  readonly openWatches: number;
}

/** @param histories by resource */
export function createApiServer(histories: Readonly<Record<string, History>>): ApiServer {
  const watches: LiveWatch[] = [];
  const waiting = new Set<() => void>();
  let isSlow = false;
  const watchAt = (index: number) => watches[index % Math.max(1, watches.length)];
  const isOpen = (live: LiveWatch | undefined): live is LiveWatch => live !== undefined && watches.includes(live);
  const close = (live: LiveWatch) => {
    if (isOpen(live)) watches.splice(watches.indexOf(live), 1);
  };

  const watch = (history: History, call: Call): Reply => ({
    status: 200,
    headers: { "content-type": "application/json" },
    body: {
      cancel: () => undefined,
      open(sink) {
        const { query } = call.info;
        const isWhole = query.get("sendInitialEvents") === "true";
        const at = isWhole ? history.head : Number(query.get("resourceVersion"));
        const live = { history, call, sink, initial: isWhole ? initialEvents(history, call) : [], at };
        watches.push(live);
        return { resume: () => undefined, cancel: () => close(live) };
      },
    },
  });

  return {
    async handler(call) {
      if (isSlow) await turn(call, waiting);
      const { resource = "", query } = call.info as ResourceCall["info"];
      const history = histories[resource];
      if (history === undefined) throw new Error(`the model has no ${resource}`);
      return query.has("watch") ? watch(history, call) : list(history, call);
    },
    setSlow(slow) {
      isSlow = slow;
      if (!slow) for (const answer of waiting) answer();
    },
    answerOne() {
      const [oldest] = waiting;
      oldest?.();
    },
    deliver(index, changes) {
      const live = watchAt(index);
      for (let left = changes; left > 0 && isOpen(live) && hasMore(live); left--) {
        const event = live.initial.shift() ?? nextEvent(live);
        if (event !== undefined) send(live, event);
      }
    },
    bookmark(index) {
      const live = watchAt(index);
      if (live?.call.info.query.get("allowWatchBookmarks") !== "true" || live.initial.length > 0) return;
      send(live, bookmark(live.history, live.call, live.at));
    },
    breakWatch(index) {
      const live = watchAt(index);
      if (live === undefined) return;
      close(live);
      live.sink.end();
    },
    get openWatches() {
      return watches.length;
    },
  };
}

function hasMore({ history, initial, at }: LiveWatch): boolean {
  return initial.length > 0 || history.after(at) !== undefined;
}

/** The next change; undefined if there is none or the watch does not see it. */
function nextEvent(live: LiveWatch): object | undefined {
  const change = live.history.after(live.at);
  if (change === undefined) return undefined;
  live.at = change.version;
  return watchEvent(live.history, live.call, change);
}

function send({ sink }: LiveWatch, event: object): void {
  sink.write(Buffer.from(`${JSON.stringify(event)}\n`));
}

/** Waits until the script lets the call go on. */
function turn(call: Call, waiting: Set<() => void>): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const leave = (finish: () => void) => {
      waiting.delete(answer);
      finish();
    };
    const answer = () => leave(resolve);
    waiting.add(answer);
    call.signal.addEventListener("abort", () => leave(() => reject(new Error("given up"))));
  });
}

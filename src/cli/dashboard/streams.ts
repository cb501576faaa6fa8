// The event streams of open pages. Invariants: a page gets each part in its newest state; what waits for a slow page is a set of ids, which
// is never larger than the board; there are at most MAX_STREAMS.
import type { ServerResponse } from "node:http";
import type { About, Tick } from "./model/parts.ts";

export const MAX_STREAMS = 16;

interface Stream {
  readonly response: ServerResponse;
  /** Undefined: the page has nothing yet, and gets the whole. */
  pending: Set<string> | undefined;
  isFull: boolean;
}

export interface Streams {
  /** False if there are too many. */
  add(response: ServerResponse): boolean;
  changed(ids: Iterable<string>): void;
  /** Tells all pages the time. */
  tick(): void;
  readonly size: number;
  closeAll(): void;
}

/** @param now the tick of this moment */
export function createStreams(parts: ReadonlyMap<string, string>, about: About, now: () => Tick): Streams {
  const streams = new Set<Stream>();
  const write = (stream: Stream, event: string, json: string) => {
    stream.isFull = !stream.response.write(`event: ${event}\ndata: ${json}\n\n`);
  };
  const flush = (stream: Stream) => {
    const { pending } = stream;
    if (stream.isFull || pending?.size === 0) return;
    stream.pending = new Set();
    write(stream, "parts", pending === undefined ? wholeMessage(parts, about) : changeMessage(parts, pending));
  };
  return {
    add(response) {
      if (streams.size >= MAX_STREAMS) return false;
      const stream: Stream = { response, pending: undefined, isFull: false };
      streams.add(stream);
      response.on("close", () => streams.delete(stream));
      response.on("drain", () => {
        stream.isFull = false;
        flush(stream);
      });
      flush(stream);
      write(stream, "tick", JSON.stringify(now()));
      return true;
    },
    changed(ids) {
      for (const stream of streams) {
        for (const id of ids) stream.pending?.add(id);
        flush(stream);
      }
    },
    tick() {
      const tick = JSON.stringify(now());
      // A page that does not read needs no time.
      for (const stream of streams) if (!stream.isFull) write(stream, "tick", tick);
    },
    get size() {
      return streams.size;
    },
    closeAll() {
      for (const { response } of streams) response.destroy();
    },
  };
}

function wholeMessage(parts: ReadonlyMap<string, string>, about: About): string {
  return `{"isWhole":true,"about":${JSON.stringify(about)},"set":${objectOf(parts)},"gone":[]}`;
}

function changeMessage(parts: ReadonlyMap<string, string>, ids: ReadonlySet<string>): string {
  const set = [...ids].flatMap((id) => {
    const json = parts.get(id);
    return json === undefined ? [] : [[id, json] as const];
  });
  const gone = [...ids].filter((id) => !parts.has(id));
  return `{"isWhole":false,"set":${objectOf(set)},"gone":${JSON.stringify(gone)}}`;
}

function objectOf(entries: Iterable<readonly [id: string, json: string]>): string {
  return `{${[...entries].map(([id, json]) => `${JSON.stringify(id)}:${json}`).join(",")}}`;
}

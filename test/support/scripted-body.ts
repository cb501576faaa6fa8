// Scripted bodies: a source that a test writes to, and a sink that records what arrives and may be full.
import type { ByteSink, ByteSource, SourceControl } from "../../src/proxy/http/byte-stream.ts";

export interface ScriptedSource extends ByteSource {
  /** Writes to the reader of the source. Returns whether the reader wants more. */
  write(data: string | Uint8Array): boolean;
  end(): void;
  abort(error?: Error): void;
  readonly opened: boolean;
  readonly cancelled: boolean;
  /** How often the reader asked for more. */
  readonly resumed: number;
}

export function scriptedSource(): ScriptedSource {
  let sink: ByteSink | undefined;
  let cancelled = false;
  let resumed = 0;
  const opened = () => {
    if (sink === undefined) throw new Error("the source has not been opened");
    return sink;
  };
  return {
    open(receiver): SourceControl {
      sink = receiver;
      return {
        resume() {
          resumed++;
        },
        cancel() {
          cancelled = true;
        },
      };
    },
    cancel() {
      cancelled = true;
    },
    write: (data) => opened().write(typeof data === "string" ? Buffer.from(data) : data),
    end: () => opened().end(),
    abort: (error = new Error("broken")) => opened().abort(error),
    get opened() {
      return sink !== undefined;
    },
    get cancelled() {
      return cancelled;
    },
    get resumed() {
      return resumed;
    },
  };
}

export interface RecordingSink extends ByteSink {
  readonly text: string;
  readonly bytes: Buffer;
  readonly writes: number;
  readonly state: "open" | "ended" | "aborted";
  /** From this call on `write` returns false. */
  full: boolean;
}

export function recordingSink(): RecordingSink {
  const chunks: Buffer[] = [];
  let state: RecordingSink["state"] = "open";
  const sink: RecordingSink = {
    full: false,
    write(chunk) {
      if (state !== "open") throw new Error(`a write after the sink was ${state}`);
      chunks.push(Buffer.from(chunk)); // copied, since the memory may be reused
      return !sink.full;
    },
    end() {
      if (state !== "open") throw new Error(`an end after the sink was ${state}`);
      state = "ended";
    },
    abort() {
      if (state !== "open") throw new Error(`an abort after the sink was ${state}`);
      state = "aborted";
    },
    get text() {
      return Buffer.concat(chunks).toString("utf8");
    },
    get bytes() {
      return Buffer.concat(chunks);
    },
    get writes() {
      return chunks.length;
    },
    get state() {
      return state;
    },
  };
  return sink;
}

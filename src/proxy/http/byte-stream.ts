// A minimal push stream with back-pressure, synchronous and without queues: a filter costs one call a chunk.
import { Readable } from "node:stream";
import { MeshError } from "../../base/errors.ts";
import type { MemoryShare } from "../../base/fair-memory.ts";

/** After `end` or `abort` nothing more is called. */
export interface ByteSink {
  /** False: the sink is full, so stop until `resume` is called. A full sink still accepts writes. */
  write(chunk: Uint8Array): boolean;
  end(): void;
  /** The body broke off: the receiver must see an error, never a clean end. */
  abort(error: Error): void;
}

export interface SourceControl {
  /** The sink wants more, after it has answered false. */
  resume(): void;
  /** The receiver is gone: free everything upstream immediately. */
  cancel(error: Error): void;
}

/** A body that is yet to come: either opened once or cancelled. */
export interface ByteSource {
  /** Counts the bytes of the body that a reader holds. Absent: only the bounds of the readers count. */
  readonly share?: MemoryShare | undefined;
  /** Nothing is written before `open` has returned: the first bytes come in a later microtask. */
  open(sink: ByteSink): SourceControl;
  /** Gives the body up unread. */
  cancel(error: Error): void;
}

/** The error of a body whose bytes the memory has no room for. */
export function cutForMemory(): MeshError {
  return new MeshError("OVER_MEMORY_SHARE", "reading a body: others need the memory that it holds");
}

/** The same body, whose bytes count for the share. */
export function sharedBody(body: ByteSource, share: MemoryShare): ByteSource {
  return { share, open: (sink) => body.open(sink), cancel: (error) => body.cancel(error) };
}

export function discardBody(body: Uint8Array | ByteSource | null, why = new Error("the body is not needed")): void {
  if (body !== null && !(body instanceof Uint8Array)) body.cancel(why);
}

/** Bytes are written in one piece, in a later microtask. */
export function asSource(body: Uint8Array | ByteSource): ByteSource {
  if (!(body instanceof Uint8Array)) return body;
  return {
    cancel: () => undefined,
    open(sink) {
      let isOver = false;
      queueMicrotask(() => {
        if (isOver) return;
        if (body.length > 0) sink.write(body);
        if (!isOver) sink.end();
        isOver = true;
      });
      return {
        resume: () => undefined,
        cancel() {
          isOver = true;
        },
      };
    },
  };
}

/** The bytes of a body. Cancels a larger one. @throws MeshError `BODY_TOO_LARGE`, or the body's own error */
export function readBody(body: Uint8Array | ByteSource | null, maxBytes: number): Promise<Uint8Array> {
  if (body === null) return Promise.resolve(new Uint8Array());
  if (body instanceof Uint8Array) return body.length > maxBytes ? Promise.reject(tooLarge(maxBytes)) : Promise.resolve(body);
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    let isOver = false;
    const giveUp = (error: MeshError) => {
      isOver = true;
      chunks.length = 0;
      hold?.end();
      control.cancel(error);
      reject(error);
    };
    const hold = body.share?.hold(() => giveUp(cutForMemory()));
    const control = body.open({
      write(chunk) {
        if (isOver) return false;
        bytes += chunk.length;
        chunks.push(chunk);
        if (bytes > maxBytes) giveUp(tooLarge(maxBytes));
        else hold?.set(bytes);
        return !isOver;
      },
      end() {
        hold?.end();
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
      },
      abort(error) {
        hold?.end();
        reject(error);
      },
    });
  });
}

function tooLarge(maxBytes: number): MeshError {
  return new MeshError("BODY_TOO_LARGE", `reading a body: more than ${maxBytes} bytes`);
}

/** The body for undici. It buffers at most 16 KB and a chunk. Destroying it cancels the source. */
export function readableOf(source: ByteSource): Readable {
  let control: SourceControl | undefined;
  let complete = false;
  const stream = new Readable({
    read() {
      if (control === undefined) control = open();
      else control.resume();
    },
    destroy(error, done) {
      const gone = error ?? new Error("sending a request body: given up");
      if (control === undefined) source.cancel(gone);
      else if (!complete) control.cancel(gone);
      done(error);
    },
  });
  const open = () =>
    source.open({
      write: (chunk) => stream.push(chunk),
      end() {
        complete = true;
        stream.push(null);
      },
      abort(error) {
        complete = true;
        stream.destroy(error);
      },
    });
  return stream;
}

// Bodies of clients that may be anybody. Invariants: what nobody has read of a body is in one buffer, of as
// many bytes as the socket gave at once; a body of tiny chunks ends its connection. Node itself keeps up to
// 64 KiB in chunks as they came, and a chunk of one byte (a TLS record, an HTTP/2 frame) takes hundreds, and
// 10 microseconds of the event loop. Used by the servers of HTTP/1.1 and by the manager's gRPC server.
import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { createClientPace } from "./client-pace.ts";
import { systemClock } from "./clock.ts";
import { createGrowingBytes, type GrowingBytes } from "./growing-bytes.ts";

/** Networks and honest clients rarely give less at once, but for messages that are so small. */
const TINY_BYTES = 256;
/** Tiny chunks of one body. A proxy sends at most 500 messages a second (proxy-stream.ts). */
const TINY_CHUNKS = { perSecond: 500, burst: 512 };

/** A request of an HTTP server with a compact body: its option `IncomingMessage`. */
export class CompactRequest extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    keepCompact(this, () => socket.destroy());
  }
}

/**
 * Makes the body of a stream compact, before any of it has come.
 * @param cut ends the connection of a client that sends too many tiny chunks
 */
export function keepCompact(body: Readable, cut: () => void, nowMs: () => number = systemClock.monotonicMs): void {
  // With one unread byte Node stops to read from the socket. No option of an HTTPS or HTTP/2 server sets
  // this.
  (body as unknown as { readonly _readableState: { highWaterMark: number } })._readableState.highWaterMark = 1;
  const [push, read] = [body.push.bind(body), body._read.bind(body)];
  /** What has come behind a chunk that nobody has read yet. */
  let unread: GrowingBytes | undefined;
  const pushUnread = () => {
    const bytes = unread?.bytes;
    unread = undefined;
    if (bytes !== undefined) push(bytes);
  };
  const pace = createClientPace({ ...TINY_CHUNKS, clock: { monotonicMs: nowMs } });
  const isFlood = ({ length }: Uint8Array) => length < TINY_BYTES && !pace.allow("", 1);
  body.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk instanceof Uint8Array && isFlood(chunk)) {
      cut();
      return false;
    }
    if (chunk instanceof Uint8Array && body.readableLength > 0) {
      unread ??= createGrowingBytes(Number.POSITIVE_INFINITY);
      unread.push(chunk);
      return false;
    }
    if (chunk === null) pushUnread();
    return push(chunk, encoding);
  };
  body._read = (size) => {
    pushUnread();
    read(size);
  };
}

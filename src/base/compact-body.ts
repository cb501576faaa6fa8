// Keeps the bodies of untrusted clients compact. By default Node keeps up to 64 KiB of an unread body as
// separate chunks, and a chunk of one byte takes hundreds of bytes. Invariants: what comes after an unread
// chunk is in one buffer, with at most one read of the socket; a body of tiny chunks ends its connection.
import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { createClientPace } from "./client-pace.ts";
import { systemClock } from "./clock.ts";
import { createGrowingBytes, type GrowingBytes } from "./growing-bytes.ts";

/** A chunk with fewer bytes is tiny. Honest clients rarely send one, except for small messages. */
const TINY_BYTES = 256;
/** The tiny chunks that one body may have. A proxy sends at most 500 messages a second (proxy-stream.ts). */
const TINY_CHUNKS = { perSecond: 500, burst: 512 };

/** A request with a compact body, for the option `IncomingMessage` of an HTTP server. */
export class CompactRequest extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    keepCompact(this, () => socket.destroy());
  }
}

/**
 * Keeps the body of a stream compact. Call this before its first bytes come.
 * @param cut ends the connection of a client that sends too many tiny chunks
 */
export function keepCompact(body: Readable, cut: () => void, nowMs: () => number = systemClock.monotonicMs): void {
  // With this mark Node stops reading from the socket as soon as one byte is unread. No option of an HTTPS or
  // HTTP/2 server sets it.
  (body as unknown as { readonly _readableState: { highWaterMark: number } })._readableState.highWaterMark = 1;
  const [push, read] = [body.push.bind(body), body._read.bind(body)];
  /** The bytes that came after a chunk that nobody has read yet. */
  let unreadBytes: GrowingBytes | undefined;
  const pushUnread = () => {
    const bytes = unreadBytes?.bytes;
    unreadBytes = undefined;
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
      unreadBytes ??= createGrowingBytes(Number.POSITIVE_INFINITY);
      unreadBytes.push(chunk);
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

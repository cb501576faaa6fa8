// Bodies of clients that may be anybody. Invariant: what nobody has read of a body is in one buffer, of as many bytes as the socket gave at once. Node itself
// keeps up to 64 KiB in chunks as they came, and a chunk of one byte takes hundreds: with 256 connections more than a gigabyte. Used by the servers of
// HTTP/1.1 and by the manager's gRPC server.
import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { createGrowingBytes, type GrowingBytes } from "./growing-bytes.ts";

/** A request of an HTTP server with a compact body: its option `IncomingMessage`. */
export class CompactRequest extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    keepCompact(this);
  }
}

/** Makes the body of a stream compact, before any of it has come. */
export function keepCompact(body: Readable): void {
  // With one unread byte Node stops to read from the socket. No option of an HTTPS or HTTP/2 server sets this.
  (body as unknown as { readonly _readableState: { highWaterMark: number } })._readableState.highWaterMark = 1;
  const [push, read] = [body.push.bind(body), body._read.bind(body)];
  /** What has come behind a chunk that nobody has read yet. */
  let unread: GrowingBytes | undefined;
  const pushUnread = () => {
    const bytes = unread?.bytes;
    unread = undefined;
    if (bytes !== undefined) push(bytes);
  };
  body.push = (chunk: unknown, encoding?: BufferEncoding) => {
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

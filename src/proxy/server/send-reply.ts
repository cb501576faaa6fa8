// Writes a reply to the client. Invariants: a body that breaks off destroys the connection, so that it never
// looks complete; a full socket pauses the source; the head leaves immediately if the body is not there yet.
// `ServerResponse.cork` is not used: with a deferred `uncork` it loses data at `end`.
import type { ServerResponse } from "node:http";
import { MeshError } from "../../base/errors.ts";
import { type ByteSink, type ByteSource, discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";

/** Starts sending; the response's own events say when it is done. */
export function sendReply(res: ServerResponse, reply: Reply): void {
  const { body } = reply;
  if (res.destroyed || res.closed) {
    discardBody(body, clientGone());
    return;
  }
  try {
    res.writeHead(reply.status, reply.headers as Record<string, string | string[]>);
  } catch (error) {
    discardBody(body, clientGone());
    throw error;
  }
  if (body === null) res.end();
  else if (body instanceof Uint8Array) res.end(body);
  else pump(res, body);
}

function pump(res: ServerResponse, body: ByteSource): void {
  let isOver = false;
  let hasWritten = false;
  let isWaiting = false;
  const onDrain = () => {
    isWaiting = false;
    if (!isOver) control.resume();
  };
  const sink: ByteSink = {
    write(chunk) {
      hasWritten = true;
      const wanted = res.write(chunk);
      if (!wanted && !isWaiting) {
        isWaiting = true;
        res.once("drain", onDrain);
      }
      return wanted;
    },
    end() {
      isOver = true;
      res.end();
    },
    abort() {
      isOver = true;
      res.destroy();
    },
  };
  const control = body.open(sink);
  res.once("close", () => {
    if (isOver) return;
    isOver = true;
    control.cancel(clientGone());
  });
  // What was already there is written in the source's microtask, together with the head. Else the head goes
  // alone.
  queueMicrotask(() => {
    if (!hasWritten && !isOver && !res.destroyed) res.flushHeaders();
  });
}

function clientGone(): MeshError {
  return new MeshError("ABORTED", "sending a response: the client is gone");
}

/** A client that takes nothing for so long although something waits for it. */
export const STALLED_MS = 60_000;

/**
 * Breaks the connection of a client that has stopped reading. Until then it holds a chunk and the sockets'
 * buffers: the stream behind it is paused. Every chunk that the kernel takes is progress, so a slow client
 * keeps its connection.
 */
export function dropStalledReader(res: ServerResponse, stalledMs: number, onDropped: () => void): void {
  res.setTimeout(stalledMs, () => {
    const { socket } = res;
    if (socket === null) return;
    if (socket.writableLength === 0) {
      socket.setTimeout(stalledMs); // nothing waits for the client: look again
      return;
    }
    onDropped();
    res.destroy();
  });
}

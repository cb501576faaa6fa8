// Breaks the connection of a client that does not read its answer: a list that waits for it holds a place in the queue before the
// API server. Called by the traffic server.
import type { ServerResponse } from "node:http";

/** A client that takes nothing for so long although something waits for it. */
export const STALLED_MS = 60_000;

/**
 * Breaks the connection of a client that has stopped reading. Until then it holds a chunk and the sockets' buffers: the
 * stream behind it is paused. Every chunk that the kernel takes is progress, so a slow client keeps its connection.
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

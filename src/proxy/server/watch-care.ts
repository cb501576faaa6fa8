// What keeps a call from living or hanging for ever at our side: a watch that the API server does not end, a client that does not
// read (its list holds a place in the queue before the API server). Used by the traffic server.
import type { ServerResponse } from "node:http";
import type { RequestInfo } from "../../kube/request-info.ts";

/** Added to the time that the client asked for: the API server ends the watch first, unless it cannot. */
const MARGIN_MS = 30_000;
/** Without a time of the client's the API server ends a watch after 30 to 60 minutes (--min-request-timeout; some raise it). */
const DEFAULT_MS = 2 * 3_600_000;
/** Longer timers fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** A client that takes nothing for so long although something waits for it. */
export const STALLED_MS = 60_000;

/** After how many milliseconds we end a watch that the API server has not ended. */
export function watchDeadlineMs({ query }: Pick<RequestInfo, "query">): number {
  const seconds = Number(query.get("timeoutSeconds") ?? 0);
  return seconds > 0 ? Math.min(seconds * 1_000 + MARGIN_MS, MAX_MS) : DEFAULT_MS;
}

/**
 * Breaks the connection of a client that has stopped reading. Until then it holds a chunk and the sockets' buffers: the
 * stream behind it is paused. Every chunk that the kernel takes is progress, so a client that is only slow is left alone.
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

// Counts connected clients. At shutdown the listener stays open while there are any.
import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { type Clock, sleep } from "../../base/clock.ts";

export interface ClientCount {
  /** Resolves once no client has had a connection for `quietMs`, at the latest after `withinMs`. */
  untilNone(withinMs: number, quietMs: number): Promise<void>;
}

/** Counts the connections of a TLS server from now on. */
export function createClientCount(server: EventEmitter, clock: Clock): ClientCount {
  let openCount = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  server.on("secureConnection", (socket: Socket) => {
    openCount++;
    socket.once("close", () => {
      openCount--;
      lastMs = clock.monotonicMs();
    });
  });
  return {
    async untilNone(withinMs, quietMs) {
      const endMs = clock.monotonicMs() + withinMs;
      for (let nowMs = clock.monotonicMs(); nowMs < endMs; nowMs = clock.monotonicMs()) {
        const quietAtMs = openCount === 0 ? lastMs + quietMs : nowMs + quietMs;
        if (quietAtMs <= nowMs) return;
        await sleep(clock, Math.min(quietAtMs, endMs) - nowMs);
      }
    },
  };
}

// Counts the connections to the API server by pool, and breaks each one whose peer acknowledges nothing any more.
// Invariant: the kernel's table, which is dear to read, is read only while data may be unacknowledged.
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { PeerWatch, readRetransmits } from "./unacknowledged.ts";
import type { LostBy, PoolName } from "./upstream-metrics.ts";

/** How soon a vanished API server is noticed (docs/decisions/0009): within 45 s by default. Times in milliseconds. */
export interface Liveness {
  /** TCP keepalive probes a connection after this time without traffic, */
  readonly keepAliveIdleMs: number;
  /** again after this time, */
  readonly keepAliveIntervalMs: number;
  /** and closes the connection after so many probes without an answer. */
  readonly keepAliveProbes: number;
  /** The time between two HTTP/2 PINGs. A connection without any bytes in that time is lost. */
  readonly pingEveryMs: number;
  /** A connection is lost if data stays unacknowledged for so long. It is checked every `unackedCheckMs`. */
  readonly unackedMs: number;
  readonly unackedCheckMs: number;
}

export const DEFAULT_LIVENESS: Liveness = {
  keepAliveIdleMs: 10_000,
  keepAliveIntervalMs: 10_000,
  keepAliveProbes: 3,
  pingEveryMs: 15_000,
  unackedMs: 30_000,
  unackedCheckMs: 5_000,
};

export function keepAliveOf({ keepAliveIdleMs, keepAliveIntervalMs, keepAliveProbes }: Liveness) {
  return { enable: true, initialDelay: keepAliveIdleMs, interval: keepAliveIntervalMs, count: keepAliveProbes } as const;
}

export interface ConnectionsOptions {
  readonly clock: Clock;
  readonly liveness: Liveness;
  readonly onLost: (pool: PoolName, by: LostBy) => void;
  /** Default: the kernel's table. */
  readonly retransmits?: () => Promise<ReadonlyMap<string, number>>;
}

export interface Connections {
  /** Counts the connection until it closes. */
  add(pool: PoolName, socket: Socket): void;
  openIn(pool: PoolName): number;
  /** Ends the checks. The sockets stay open. */
  stop(): void;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { clock, liveness, onLost, retransmits = readRetransmits } = options;
  const open = new Map<Socket, { readonly pool: PoolName; readonly peer: PeerWatch }>();
  let timer: Timer | undefined;
  let stopped = false;

  const check = async () => {
    const isNeeded = [...open].some(([socket, { peer }]) => peer.needsTable(socket));
    const table = isNeeded ? await retransmits() : undefined;
    for (const [socket, { pool, peer }] of open) {
      if (!peer.isLost(socket, table, clock.monotonicMs())) continue;
      onLost(pool, "unacknowledged");
      socket.destroy(new MeshError("PEER_LOST", "talking to the API server: it acknowledges nothing any more"));
    }
  };
  const arm = () => {
    if (stopped || open.size === 0) return;
    timer ??= clock.after(liveness.unackedCheckMs, () => {
      const next = () => {
        timer = undefined;
        arm();
      };
      check().then(next, next); // a table that cannot be read is read the next time
    });
  };

  return {
    add(pool, socket) {
      open.set(socket, { pool, peer: new PeerWatch(liveness.unackedMs) });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ETIMEDOUT") onLost(pool, "keepalive");
      });
      socket.once("close", () => open.delete(socket));
      arm();
    },
    openIn(pool) {
      let count = 0;
      for (const one of open.values()) if (one.pool === pool) count++;
      return count;
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}

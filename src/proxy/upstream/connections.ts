// Every connection to the API server, whoever made it: counted by pool, and broken once its peer acknowledges nothing any
// more. Invariant: the kernel's table is looked at only while a connection is open. Made by the upstream client.
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Liveness } from "./liveness.ts";
import { readRetransmits, UnacknowledgedWatch } from "./unacknowledged.ts";
import type { LostBy, PoolName } from "./upstream-metrics.ts";

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
  /** Ends the looking; the sockets are their makers' to close. */
  stop(): void;
}

/** Makes an empty set. */
export function createConnections(options: ConnectionsOptions): Connections {
  const { clock, liveness, onLost, retransmits = readRetransmits } = options;
  const open = new Map<Socket, PoolName>();
  const unacknowledged = new UnacknowledgedWatch<Socket>(liveness.unackedMs);
  let timer: Timer | undefined;
  let stopped = false;

  const look = async () => {
    const table = await retransmits();
    for (const socket of unacknowledged.look(open.keys(), table, clock.monotonicMs())) {
      onLost(open.get(socket) as PoolName, "unacknowledged");
      socket.destroy(new MeshError("PEER_LOST", "talking to the API server: it acknowledges nothing any more"));
    }
  };
  const arm = () => {
    if (stopped || open.size === 0) return;
    timer ??= clock.after(liveness.unackedCheckMs, () => {
      void look().finally(() => {
        timer = undefined;
        arm();
      });
    });
  };

  return {
    add(pool, socket) {
      open.set(socket, pool);
      socket.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ETIMEDOUT") onLost(pool, "keepalive");
      });
      socket.once("close", () => open.delete(socket));
      arm();
    },
    openIn(pool) {
      let count = 0;
      for (const one of open.values()) if (one === pool) count++;
      return count;
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}

// Counts the connections to the API server by pool, and breaks a connection whose peer acknowledges nothing.
// Linux would repeat the data for a quarter of an hour, and Node cannot set TCP_USER_TIMEOUT. So this reads
// the kernel's table of connections, but only while data may be unacknowledged, since reading it is slow.
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { LostBy, PoolName } from "./upstream-metrics.ts";

/** How soon a vanished API server is noticed, in ms (docs/decisions/0009): by default within 45 s. */
export interface Liveness {
  /** TCP keepalive sends the first probe after this time without traffic. */
  readonly keepAliveIdleMs: number;
  /** The time between two probes. */
  readonly keepAliveIntervalMs: number;
  /** The connection is closed after so many probes without an answer. */
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

export function createConnections(options: ConnectionsOptions) {
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
    /** Counts and checks the connection until it closes. */
    add(pool: PoolName, socket: Socket): void {
      open.set(socket, { pool, peer: new PeerWatch(liveness.unackedMs) });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ETIMEDOUT") onLost(pool, "keepalive");
      });
      socket.once("close", () => open.delete(socket));
      arm();
    },
    openIn(pool: PoolName): number {
      let count = 0;
      for (const one of open.values()) if (one.pool === pool) count++;
      return count;
    },
    /** Ends the checks. The sockets stay open. */
    stop(): void {
      stopped = true;
      timer?.cancel();
    },
  };
}

/** The timer column of a line whose bytes the kernel repeats. */
const RETRANSMITTING = " 01:";
/** Offset of the timer column from the colon behind the line's number. IPv6 addresses have 48 more digits. */
const TIMER_AT = 50;
const TIMER6_AT = TIMER_AT + 48;
const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/** The connections whose bytes the kernel repeats: "LOCAL PORT-REMOTE PORT" => the number of repetitions. */
export function parseRetransmits(table: string): Map<string, number> {
  const found = new Map<string, number>();
  let end = -1;
  for (let at = 0; at < table.length; at = end + 1) {
    const newline = table.indexOf("\n", at);
    end = newline < 0 ? table.length : newline;
    const from = table.indexOf(":", at); // after the line's number
    if (!table.startsWith(RETRANSMITTING, from + TIMER_AT) && !table.startsWith(RETRANSMITTING, from + TIMER6_AT)) continue;
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt ...
    const [, local = "", remote = "", , , , retransmits = ""] = table.slice(at, end).trim().split(/\s+/);
    const count = Number.parseInt(retransmits, 16);
    if (count > 0) found.set(`${hexPort(local)}-${hexPort(remote)}`, count);
  }
  return found;
}

/** Empty where there are no tables. */
export async function readRetransmits(): Promise<Map<string, number>> {
  const tables = await Promise.all(TABLES.map((file) => readFile(file, "latin1").catch(() => "")));
  return new Map(tables.flatMap((table) => [...parseRetransmits(table)]));
}

export type Traffic = Pick<Socket, "localPort" | "remotePort" | "bytesRead" | "bytesWritten">;

/** Decides whether the peer of one connection has vanished. */
export class PeerWatch {
  readonly #limitMs: number;
  #bytesRead = -1;
  #bytesWritten = -1;
  #acknowledged = -1;
  /** Set while the kernel repeats unacknowledged bytes; `retransmits` is the number at the last check. */
  #repeating: { readonly sinceMs: number; readonly retransmits: number } | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** False if bytes were read since the last check, or all written bytes were acknowledged. */
  needsTable({ bytesRead, bytesWritten }: Traffic): boolean {
    return this.#repeating !== undefined || (bytesRead === this.#bytesRead && bytesWritten !== this.#acknowledged);
  }

  /** To be called in each check. True if the peer has acknowledged nothing for too long. */
  isLost(connection: Traffic, table: ReadonlyMap<string, number> | undefined, nowMs: number): boolean {
    const { bytesRead, bytesWritten } = connection;
    // Another connection with the same pair of ports, which hangs as well, does no harm.
    if (table !== undefined) this.#look(table.get(`${connection.localPort}-${connection.remotePort}`), bytesWritten, nowMs);
    this.#bytesRead = bytesRead;
    this.#bytesWritten = bytesWritten;
    return this.#repeating !== undefined && nowMs - this.#repeating.sinceMs >= this.#limitMs;
  }

  #look(retransmits: number | undefined, bytesWritten: number, nowMs: number): void {
    if (retransmits === undefined) {
      this.#repeating = undefined;
      // Bytes that were written since the last check may not have been repeated yet.
      if (bytesWritten === this.#bytesWritten) this.#acknowledged = bytesWritten;
      return;
    }
    // The kernel counts anew after each acknowledgement.
    const before = this.#repeating;
    const sinceMs = before !== undefined && retransmits >= before.retransmits ? before.sinceMs : nowMs;
    this.#repeating = { sinceMs, retransmits };
  }
}

function hexPort(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);
}

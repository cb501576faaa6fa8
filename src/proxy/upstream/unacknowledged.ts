// Finds connections whose peer no longer acknowledges what was sent. Linux sends no keepalive while something is unacknowledged
// and goes on repeating it for a quarter of an hour; Node cannot set TCP_USER_TIMEOUT. The kernel's own table says which
// connections repeat: /proc/self/net/tcp, the same file for every user. Invariant: a slow answer is never mistaken for a dead
// peer, since the peer's kernel acknowledges the request at once. Where the table is missing (not Linux) nothing is found.
import { readFile } from "node:fs/promises";

/** A connection by its two ports. That another one of this pod has the same pair, and hangs as well, does no harm. */
export interface Ports {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
}

const RETRANSMITTING = "01";
const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/** The connections in which the kernel repeats unacknowledged bytes, with how often it did in a row. */
export function parseRetransmits(table: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of table.split("\n").slice(1)) {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt ...
    const [, local = "", remote = "", , , timer = "", retransmits = ""] = line.trim().split(/\s+/);
    if (!timer.startsWith(`${RETRANSMITTING}:`)) continue;
    const count = Number.parseInt(retransmits, 16);
    if (count > 0) found.set(`${hexPort(local)}-${hexPort(remote)}`, count);
  }
  return found;
}

/** Reads the kernel's tables; empty where there are none. */
export async function readRetransmits(): Promise<Map<string, number>> {
  const tables = await Promise.all(TABLES.map((file) => readFile(file, "latin1").catch(() => "")));
  return new Map(tables.flatMap((table) => [...parseRetransmits(table)]));
}

interface Suspicion {
  readonly sinceMs: number;
  readonly retransmits: number;
}

/** Remembers since when connections repeat, from one look to the next. */
export class UnacknowledgedWatch<Connection extends Ports> {
  readonly #limitMs: number;
  #suspects = new Map<Connection, Suspicion>();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Takes what a look at the table found, and returns those that have repeated for too long without an acknowledgement. */
  look(connections: Iterable<Connection>, retransmits: ReadonlyMap<string, number>, nowMs: number): Connection[] {
    const suspects = new Map<Connection, Suspicion>();
    const lost: Connection[] = [];
    for (const connection of connections) {
      const count = retransmits.get(`${connection.localPort}-${connection.remotePort}`);
      if (count === undefined) continue;
      const before = this.#suspects.get(connection);
      // The count starts anew with every acknowledgement.
      const sinceMs = before !== undefined && count >= before.retransmits ? before.sinceMs : nowMs;
      if (nowMs - sinceMs >= this.#limitMs) lost.push(connection);
      else suspects.set(connection, { sinceMs, retransmits: count });
    }
    this.#suspects = suspects;
    return lost;
  }
}

function hexPort(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);
}

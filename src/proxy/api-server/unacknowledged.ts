// Finds connections whose peer acknowledges nothing any more, in the kernel's table /proc/self/net/tcp. Linux sends no keepalive while data
// is unacknowledged and repeats the data for a quarter of an hour, and Node cannot set TCP_USER_TIMEOUT. Invariant: a slow answer is no
// dead peer, since the peer's kernel acknowledges a request at once. connections.ts uses it; without the table nothing is found.
import { readFile } from "node:fs/promises";

/** A connection by its two ports. Another one with the same pair, which hangs as well, does no harm. */
export interface Ports {
  readonly localPort?: number | undefined;
  readonly remotePort?: number | undefined;
}

/** Of the columns with a colon only the timer's begins with two digits. */
const RETRANSMITTING = " 01:";
/** Where that column is after the line's number, by the widths that the kernel prints; IPv6 has two addresses of 24 more digits. */
const TIMER_AT = 50;
const TIMER6_AT = TIMER_AT + 48;
const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/**
 * The connections in which the kernel repeats unacknowledged bytes, with the number of repetitions in a row. The table has all sockets of
 * the network namespace, so that only the lines with this timer are split.
 */
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

/** Reads the kernel's tables; empty where there are none. */
export async function readRetransmits(): Promise<Map<string, number>> {
  const tables = await Promise.all(TABLES.map((file) => readFile(file, "latin1").catch(() => "")));
  return new Map(tables.flatMap((table) => [...parseRetransmits(table)]));
}

/** The traffic of a connection so far. */
export interface Traffic {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/**
 * Whether one connection may have unacknowledged data, so that the table must be read. Invariant: "no" only if bytes were read since the
 * last check, or if a check has shown that all written bytes are acknowledged.
 */
export class Doubt {
  #bytesRead = -1;
  #bytesWritten = -1;
  #acknowledged = -1;

  isOpen({ bytesRead, bytesWritten }: Traffic): boolean {
    return bytesRead === this.#bytesRead && bytesWritten !== this.#acknowledged;
  }

  /** To be called after each check. `clear`: the table was read, and the connection repeats nothing. */
  looked({ bytesRead, bytesWritten }: Traffic, clear: boolean): void {
    // Bytes that were written since the last check may not have been repeated yet.
    if (clear && bytesWritten === this.#bytesWritten) this.#acknowledged = bytesWritten;
    this.#bytesRead = bytesRead;
    this.#bytesWritten = bytesWritten;
  }
}

interface Suspicion {
  readonly sinceMs: number;
  readonly retransmits: number;
}

/** Remembers since when connections repeat, from one check to the next. */
export class UnacknowledgedWatch<Connection extends Ports> {
  readonly #limitMs: number;
  #suspects = new Map<Connection, Suspicion>();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** True while some connection repeats. */
  get suspects(): boolean {
    return this.#suspects.size > 0;
  }

  /** Takes the retransmits of a check, and returns the connections that have repeated for too long. */
  look(connections: Iterable<Connection>, retransmits: ReadonlyMap<string, number>, nowMs: number): Connection[] {
    const suspects = new Map<Connection, Suspicion>();
    const lost: Connection[] = [];
    for (const connection of connections) {
      const count = retransmits.get(portsOf(connection));
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

/** The key of a connection in the result of `parseRetransmits`. */
export function portsOf({ localPort, remotePort }: Ports): string {
  return `${localPort}-${remotePort}`;
}

function hexPort(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);
}

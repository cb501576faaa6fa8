// Finds connections whose peer has stopped to acknowledge, in the kernel's table /proc/self/net/tcp: while data is
// unacknowledged Linux sends no keepalive, but repeats the data for a quarter of an hour, and Node cannot set
// TCP_USER_TIMEOUT. A slow answer is not a dead peer, since the peer's kernel acknowledges a request immediately.
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";

/** Of the columns with a colon only the timer's begins with two digits. */
const RETRANSMITTING = " 01:";
/** Offset of that column after the line's number, as the kernel prints; IPv6 has 48 more digits. */
const TIMER_AT = 50;
const TIMER6_AT = TIMER_AT + 48;
const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/**
 * The connections (their two ports) in which the kernel repeats unacknowledged bytes, with the number of repetitions.
 * The table has all sockets of the network namespace, so that only the lines with this timer are split.
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

/** Empty where there are no tables. */
export async function readRetransmits(): Promise<Map<string, number>> {
  const tables = await Promise.all(TABLES.map((file) => readFile(file, "latin1").catch(() => "")));
  return new Map(tables.flatMap((table) => [...parseRetransmits(table)]));
}

/** A connection and its traffic so far. */
export type Traffic = Pick<Socket, "localPort" | "remotePort" | "bytesRead" | "bytesWritten">;

/**
 * Whether the peer of one connection still acknowledges. Invariant: the table is not needed if bytes were
 * read since the last check, or if a check has shown that all written bytes are acknowledged.
 */
export class PeerWatch {
  readonly #limitMs: number;
  #bytesRead = -1;
  #bytesWritten = -1;
  #acknowledged = -1;
  /** The kernel repeats unacknowledged bytes, with this number of repetitions at the last check. */
  #repeating: { readonly sinceMs: number; readonly retransmits: number } | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  needsTable({ bytesRead, bytesWritten }: Traffic): boolean {
    return this.#repeating !== undefined || (bytesRead === this.#bytesRead && bytesWritten !== this.#acknowledged);
  }

  /**
   * To be called in each check. True if the peer has acknowledged nothing for too long.
   * @param table undefined if no connection needs the table
   */
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

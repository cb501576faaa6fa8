// The preStop hook of a proxy that is a plain container. All containers of a pod stop at the same time, and the operator still has to
// release its lease. The containers share the network, so that the kernel's table shows whether the operator is still connected.
import { type Clock, sleep } from "../../base/clock.ts";

const PAUSE_MS = 250;
/** Between two requests an operator may have no connection for a moment. */
const QUIET_MS = 1_000;
const ESTABLISHED = "01";

export interface WaitIdleOptions {
  /** Where operators connect to. */
  readonly ports: readonly number[];
  readonly atMostMs: number;
  readonly clock: Clock;
  /** /proc/net/tcp and tcp6. */
  readonly readTables: () => string;
}

/** Resolves once there has been no connection for a second, or after `atMostMs`. True if there is none. */
export async function waitIdle({ ports, atMostMs, clock, readTables }: WaitIdleOptions): Promise<boolean> {
  const endMs = clock.monotonicMs() + atMostMs;
  let busyMs = clock.monotonicMs();
  for (;;) {
    const nowMs = clock.monotonicMs();
    if (connections(readTables(), ports) > 0) busyMs = nowMs;
    if (nowMs - busyMs >= QUIET_MS) return true;
    if (nowMs >= endMs) return false;
    await sleep(clock, Math.min(PAUSE_MS, endMs - nowMs));
  }
}

/** How many connections to these ports the kernel's table (`sl local_address rem_address st ...`, ports in hex) shows. */
export function connections(table: string, ports: readonly number[]): number {
  const ends = ports.map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
  return table.split("\n").filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === ESTABLISHED && ends.some((end) => local.endsWith(end));
  }).length;
}

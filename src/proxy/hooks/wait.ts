// What the lifecycle hooks of a proxy that is a plain container wait for. preStop waits until the operator
// has no connection, since all containers of a pod stop together and the operator still releases its lease.
// postStart never gives up: the kubelet starts the operator after it.
import { get } from "node:http";
import { type Clock, sleep } from "../../base/clock.ts";

const IDLE_PAUSE_MS = 250;
/** Between two requests an operator may have no connection for a moment. */
const QUIET_MS = 1_000;
const ESTABLISHED = "01";

export interface WaitIdleOptions {
  readonly ports: readonly number[];
  readonly atMostMs: number;
  readonly clock: Clock;
  /** /proc/net/tcp and tcp6. */
  readonly readTables: () => string;
}

/** True once the kernel's table has had no connection for a second; false after `atMostMs`. */
export async function waitIdle({ ports, atMostMs, clock, readTables }: WaitIdleOptions): Promise<boolean> {
  const endMs = clock.monotonicMs() + atMostMs;
  let busyMs = clock.monotonicMs();
  for (;;) {
    const nowMs = clock.monotonicMs();
    if (connections(readTables(), ports) > 0) busyMs = nowMs;
    if (nowMs - busyMs >= QUIET_MS) return true;
    if (nowMs >= endMs) return false;
    await sleep(clock, Math.min(IDLE_PAUSE_MS, endMs - nowMs));
  }
}

/** Counts by the kernel's table (`sl local_address rem_address st ...`, ports in hex). */
export function connections(table: string, ports: readonly number[]): number {
  const ends = ports.map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
  return table.split("\n").filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === ESTABLISHED && ends.some((end) => local.endsWith(end));
  }).length;
}

const READY_PAUSE_MS = 200;
const ANSWER_MS = 5_000;

export interface WaitReadyOptions {
  /** The port of the health listener on the loopback. */
  readonly port: number;
  readonly clock: Clock;
  readonly say: (reason: string) => void;
}

/** Resolves once /startupz answers 200. */
export async function waitReady({ port, clock, say }: WaitReadyOptions): Promise<void> {
  let last: string | undefined;
  for (;;) {
    const reason = await notReady(port);
    if (reason === undefined) return;
    if (reason !== last) say(`waiting: ${reason}`);
    last = reason;
    await sleep(clock, READY_PAUSE_MS);
  }
}

function notReady(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/startupz", agent: false, timeout: ANSWER_MS }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve(response.statusCode === 200 ? undefined : body || `status ${response.statusCode}`));
      response.on("error", (error) => resolve(error.message));
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", (error) => resolve(error.message));
  });
}

// Connections of all kinds to other clusters, good and broken, through a sidecar, which begin and end all the time, while the clusters
// change. After each round, when nothing is open any more, the sidecar's memory is measured: what grows from round to round is a leak.
// Called by bench/clusters/memory.ts and test/nightly/cluster-memory.test.ts.
import { connect as connectTls } from "node:tls";
import { bundleProxy } from "../support/bundled-proxy.ts";
import { type ClusterSidecar, startClusterSidecar } from "../support/cluster-sidecar.ts";
import { eventually } from "../support/eventually.ts";
import { type ClusterServers, startClusterServers } from "./cluster-servers.ts";
import { preloadVitals, readVitals, type Vitals } from "./vitals.ts";

export interface ChurnOptions {
  readonly rounds: number;
  /** Of a round, without the time until nothing is open. */
  readonly roundSeconds: number;
  /** Visits in a second. */
  readonly rate: number;
  readonly onRound?: (vitals: Vitals, visits: number) => void;
}

/** A visit gives up after this time, like an impatient client. */
const GIVE_UP_MS = 1_000;
const CHANGE_MS = 5_000;
/** A tunnel of which one side has ended may be silent for a minute. */
const CLOSED_WITHIN_MS = 90_000;
const INSIDE = "/api/v1/namespaces/own";

type Visit = (sidecar: ClusterSidecar, name: string, port: number) => Promise<void>;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const path = (name: string, target: string) => `/_ctrlmesh/clusters/${name}-served${INSIDE}${target}`;

const asking =
  (target: string, method = "GET", body?: string): Visit =>
  async ({ ask }, name) => {
    const signal = AbortSignal.timeout(GIVE_UP_MS);
    const headers = body === undefined ? {} : { "content-type": "application/json" };
    const { answer } = await ask(path(name, target), { method, headers, signal, ...(body && { body }) });
    for await (const _ of answer);
  };

const VISITS: readonly Visit[] = [
  async ({ connect }, _name, port) => {
    const { socket } = await connect(port);
    const secured = connectTls({ socket, rejectUnauthorized: false }).on("error", () => undefined);
    secured.once("secureConnect", () => secured.write(`GET ${INSIDE}/configmaps/c HTTP/1.1\r\nHost: x\r\n\r\n`));
    secured.once("data", () => secured.end());
    const timer = setTimeout(() => secured.end(), GIVE_UP_MS);
    await new Promise((resolve) => socket.once("close", resolve).once("end", resolve));
    clearTimeout(timer);
    socket.destroy();
  },
  asking("/configmaps/c"),
  asking("/configmaps"),
  asking("/configmaps?watch=1"),
  asking("/configmaps/c", "PUT", "{}"),
  async ({ ask }, name) => {
    const headers = { connection: "Upgrade", upgrade: "spdy/3.1" };
    const signal = AbortSignal.timeout(GIVE_UP_MS);
    const { socket } = await ask(path(name, "/pods/p/exec"), { method: "POST", headers, signal });
    socket?.resume().write(Buffer.alloc(10_000));
    await pause(GIVE_UP_MS / 2);
    socket?.end();
  },
];

/** @returns the vitals after each round */
export async function runClusterChurn({ rounds, roundSeconds, rate, onRound }: ChurnOptions): Promise<readonly Vitals[]> {
  const inside = preloadVitals();
  const bundled = await bundleProxy();
  const servers = await startClusterServers();
  const sidecar = await startClusterSidecar({ proxyMain: bundled.main, flags: { "log-level": "error" } });
  try {
    const all: Vitals[] = [];
    for (let round = 0; round < rounds; round++) {
      const visits = await churn(sidecar, servers, { rate, endMs: performance.now() + roundSeconds * 1_000 });
      await eventually(async () => expectNone(await sidecar.openStreams()), CLOSED_WITHIN_MS);
      const { pid } = sidecar.child;
      all.push(await readVitals({ pid, healthUrl: sidecar.healthUrl, folder: inside.folder, serverMetrics: async () => "" }));
      onRound?.(all.at(-1) as Vitals, visits);
    }
    return all;
  } finally {
    await sidecar.stop();
    await servers.stop();
    bundled.remove();
    inside.stop();
  }
}

function expectNone(open: number): void {
  if (open > 0) throw new Error(`${open} streams, tunnels and requests are still open`);
}

async function churn(sidecar: ClusterSidecar, servers: ClusterServers, { rate, endMs }: { rate: number; endMs: number }) {
  const clusters = Object.entries(servers.ports);
  const running = new Set<Promise<void>>();
  let [begun, changes, changedMs] = [0, 0, Number.NEGATIVE_INFINITY];
  const startMs = performance.now();
  while (performance.now() < endMs) {
    if (performance.now() - changedMs > CHANGE_MS) {
      changedMs = performance.now();
      servers.change();
      const served = Object.entries(servers.upstreams()).map(([name, upstream]) => [`${name}-served`, upstream] as const);
      // One cluster comes and goes.
      await sidecar.route({ tunnels: servers.ports, served: Object.fromEntries(served.slice(changes++ % 2)) });
      await sidecar.proveHome();
    }
    for (; begun < ((performance.now() - startMs) / 1_000) * rate; begun++) {
      const [name, port] = clusters[begun % clusters.length] ?? ["", 0];
      const visit = VISITS[Math.floor(begun / clusters.length) % VISITS.length] as Visit;
      const run: Promise<void> = visit(sidecar, name, port)
        .catch(() => undefined)
        .finally(() => running.delete(run));
      running.add(run);
    }
    await pause(10);
  }
  await Promise.all(running);
  return begun;
}

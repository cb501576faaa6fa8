// The soak: sends aborted requests to a proxy of a real mesh at a steady rate, waits until the proxy is idle, and compares it with its
// first state. It measures only while the proxy is idle, after each round. A value that grows from round to round is a leak. Called by
// bench/soak.ts and test/nightly/soak.test.ts.
import { bundleProxy } from "../support/bundled-proxy.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import type { Kube } from "../support/kube.ts";
import { createManyConfigMaps } from "../support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { seededRandom } from "../support/random.ts";
import { ABUSES, type AbuseContext, pickAbuse } from "./abuses.ts";
import { startExecEnd } from "./exec-end.ts";
import { createRudeClient } from "./rude-client.ts";
import { preloadVitals, readVitals, type Vitals } from "./vitals.ts";

export interface SoakOptions {
  readonly kube: Kube;
  /** The duration of all rounds together, without the idle times. */
  readonly seconds: number;
  readonly rounds: number;
  /** Visits in a second. */
  readonly rate: number;
  readonly seed: number;
  /** The idle time after each round. Idle upstream connections are kept for a minute. */
  readonly restSeconds: number;
  readonly lastRestSeconds: number;
  readonly onRound?: (line: string) => void;
}

export interface SoakReport {
  readonly visits: number;
  readonly visitsByKind: Readonly<Record<string, number>>;
  readonly perSecond: number;
  /** The vitals before, after each round, and at the end. */
  readonly vitals: readonly Vitals[];
  /** The small GETs during the soak, one after the other. */
  readonly gets: { readonly count: number; readonly failed: number; readonly p50Ms: number; readonly p99Ms: number };
  /** Tunnels that the target of exec still holds. */
  readonly tunnels: number;
}

const NAMESPACES = ["canary-0", "canary-1", "team-0", "team-1"];
/** About 1 MB as a list, more than all buffers on its way, so that a client can abort it half way. */
const OBJECTS = 1_000;
/** Concurrent visits. Beyond this limit the rate drops, and the report shows it. */
const MAX_OPEN = 500;
const TICK_MS = 5;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { kube, rounds, seconds, onRound = () => undefined } = options;
  const inside = preloadVitals();
  const cleanUps: (() => unknown)[] = [() => inside.stop()];
  try {
    const { main, remove } = await bundleProxy();
    cleanUps.unshift(remove);
    const mesh = await startMesh({ kube, proxyMain: main });
    cleanUps.unshift(() => mesh.stop());
    const pod = await prepare(mesh);
    const end = await startExecEnd(mesh.client, "canary-0", "soak-target");
    cleanUps.unshift(() => end.stop());
    const direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
    const proxied = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
    cleanUps.unshift(() => Promise.all([direct.close(), proxied.close()]));
    const serverMetrics = async () => (await direct.get("/metrics")).body.toString();
    const vitals = () => readVitals({ pid: pod.proxy.pid, healthUrl: pod.healthUrl, folder: inside.folder, serverMetrics });
    const { hostname, port } = new URL(pod.proxyUrl);
    const client = createRudeClient({ host: hostname, port: Number(port), caPem: pod.proxyCaPem, token: kube.token });
    const context = { client, random: seededRandom(options.seed), own: "canary-0", foreign: "team-0", pod: "soak-target" };

    const getting = keepGetting(proxied);
    const byKind: Record<string, number> = Object.fromEntries(ABUSES.map(([name]) => [name, 0]));
    const all = [await vitals()];
    onRound(lineOf("before", all[0] as Vitals));
    let loadMs = 0;
    for (let round = 1; round <= rounds; round++) {
      const startedMs = performance.now();
      await abuse(context, { rate: options.rate, ms: (seconds / rounds) * 1000, byKind });
      loadMs += performance.now() - startedMs;
      const isLast = round === rounds;
      if (isLast) await getting.stop();
      await pause((isLast ? options.lastRestSeconds : options.restSeconds) * 1000);
      const now = await atRest(vitals, all[0] as Vitals, isLast ? 30_000 : 5_000);
      all.push(now);
      onRound(lineOf(`round ${round}`, now));
    }
    const visits = Object.values(byKind).reduce((sum, count) => sum + count, 0);
    const perSecond = Math.round(visits / (loadMs / 1000));
    return { visits, visitsByKind: byKind, perSecond, vitals: all, gets: getting.result(), tunnels: end.open };
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
}

/** The problems, one line each; empty if nothing has grown. */
export function complaints({ vitals, gets, tunnels }: SoakReport): string[] {
  const [before, first, last] = [vitals[0], vitals[1], vitals.at(-1)];
  if (before === undefined || first === undefined || last === undefined) return ["nothing was measured"];
  const all: string[] = [];
  const atMost = (name: string, value: number, bound: number) => {
    if (value > bound) all.push(`${name}: ${value}, at most ${Math.round(bound * 10) / 10} was expected`);
  };
  // The first round loads code and fills caches. From then on nothing may grow.
  atMost("heap after a collection (MB)", last.heapUsedMb, first.heapUsedMb + 4);
  atMost("memory outside of the heap (MB)", last.externalMb, first.externalMb + 6);
  // The allocator keeps the memory of a burst of connections (malloc_trim releases it). So a step is not growth, but a slope is.
  const firstHalf = vitals.slice(1, 1 + Math.ceil((vitals.length - 1) / 2));
  atMost("RSS (MB)", last.rssMb, Math.max(...firstHalf.map(({ rssMb }) => rssMb)) * 1.1 + 10);
  // Idle connections to the API server are kept for a minute.
  atMost("sockets", last.sockets, Math.max(before.sockets, first.sockets) + 12);
  atMost("file descriptors", last.fds, Math.max(before.fds, first.fds) + 12);
  atMost("timers", timersOf(last), timersOf(before) + 4);
  atMost("watches of the proxy", last.watches, before.watches);
  atMost("watches and tunnels at the API server", last.longRunning, before.longRunning);
  atMost("tunnels at the far end", tunnels, 0);
  atMost("small GETs that failed", gets.failed, 0);
  return all;
}

const timersOf = ({ resources }: Vitals) => resources.Timeout ?? 0;

// Of many namespaces the subset owns only two. No query can name these, so the proxy does all filtering.
async function prepare(mesh: Mesh): Promise<MeshPod> {
  const more = Array.from({ length: 20 }, (_, index) => `more-${index}`);
  await Promise.all([...NAMESPACES, ...more].map((name) => mesh.createNamespace(name)));
  await mesh.apply(demoVirtualApp());
  await createManyConfigMaps(mesh.client, { count: OBJECTS, namespaces: NAMESPACES });
  return mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
}

interface AbuseOptions {
  readonly rate: number;
  readonly ms: number;
  readonly byKind: Record<string, number>;
}

async function abuse(context: AbuseContext, { rate, ms, byKind }: AbuseOptions): Promise<void> {
  const running = new Set<Promise<void>>();
  const startedMs = performance.now();
  let begun = 0;
  for (let elapsed = 0; elapsed < ms; elapsed = performance.now() - startedMs) {
    for (; begun < (elapsed / 1000) * rate; begun++) {
      if (running.size >= MAX_OPEN) continue;
      const { name, run } = pickAbuse(context.random);
      byKind[name] = (byKind[name] ?? 0) + 1;
      const visit = run(context).finally(() => running.delete(visit));
      running.add(visit);
    }
    await pause(TICK_MS);
  }
  await Promise.all(running);
}

// The API server notices some closed connections only at its next write.
async function atRest(vitals: () => Promise<Vitals>, before: Vitals, withinMs: number): Promise<Vitals> {
  let now = await vitals();
  await eventually(
    async () => {
      now = await vitals();
      return now.longRunning <= before.longRunning && now.watches <= before.watches;
    },
    { withinMs, everyMs: 1_000 },
  ).catch(() => undefined);
  return now;
}

function keepGetting(probe: Probe) {
  const times: number[] = [];
  let failed = 0;
  let stopped = false;
  const run = async () => {
    while (!stopped) {
      const startedMs = performance.now();
      const { status } = await probe.get("/api/v1/namespaces/canary-0/configmaps/cm-000000").catch(() => ({ status: 0 }));
      if (status === 200) times.push(performance.now() - startedMs);
      else failed++;
      await pause(20);
    }
  };
  const running = run();
  return {
    async stop() {
      stopped = true;
      await running;
    },
    result() {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (part: number) => Math.round((sorted[Math.floor(sorted.length * part)] ?? 0) * 100) / 100;
      return { count: sorted.length, failed, p50Ms: at(0.5), p99Ms: at(0.99) };
    },
  };
}

/** A line about vitals. */
function lineOf(
  when: string,
  { rssMb, heapUsedMb, heapTotalMb, externalMb, fds, sockets, watches, longRunning, resources }: Vitals,
): string {
  const kinds = Object.entries(resources).map(([kind, count]) => `${kind} ${count}`);
  return `${when.padEnd(9)} RSS ${rssMb} MB, heap ${heapUsedMb} of ${heapTotalMb}, outside ${externalMb}; fds ${fds}, sockets ${sockets}; watches ${watches}, at the server ${longRunning}; ${kinds.join(", ")}`;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

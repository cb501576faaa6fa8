// `node bench/event-loop.ts`: measures whether the proxy-side filtering of a list of 100,000 objects delays
// the proxy's other work. It measures the delay of the proxy's event loop, and the response times of small
// GETs on other connections and of the health port. Each of these is requested at most every 5 ms from a
// thread of its own.
//
// Options: --objects N (default 100000), --rounds N (5), --json.
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { preloadVitals, readVitals } from "../test/soak/vitals.ts";
import { bundleProxy } from "../test/support/bundled-proxy.ts";
import { demoVirtualApp } from "../test/support/demo-app.ts";
import { startKube } from "../test/support/kube.ts";
import { startMesh } from "../test/support/mesh.ts";
import { createProbe } from "../test/support/probe.ts";
import { seedConfigMaps } from "../test/support/seed-config-maps.ts";
import type { Probed } from "./probe.ts";

const { values } = parseArgs({
  options: {
    objects: { type: "string", default: "100000" },
    rounds: { type: "string", default: "5" },
    json: { type: "boolean", default: false },
  },
});
const objects = Number(values.objects);
const rounds = Number(values.rounds);
if (!Number.isInteger(objects) || objects < 10 || !Number.isInteger(rounds) || rounds < 1) {
  process.stderr.write("event-loop: --objects must be an integer of at least 10, --rounds one of at least 1\n");
  process.exit(64);
}

const PATH = "/api/v1/configmaps";
const OWN = ["canary-0", "canary-1"];
const FOREIGN = Array.from({ length: 18 }, (_, index) => `team-${index}`);

const { main, remove } = await bundleProxy();
const preload = preloadVitals();
const kube = await startKube();
const mesh = await startMesh({ kube, proxyMain: main });
try {
  await Promise.all([...OWN, ...FOREIGN].map((name) => mesh.createNamespace(name)));
  await mesh.apply(demoVirtualApp());
  const seededMs = await elapsedMs(() => seedConfigMaps(kube, mesh.client, { count: objects, namespaces: [...OWN, ...FOREIGN] }));
  process.stderr.write(`${objects} ConfigMaps created in ${(seededMs / 1000).toFixed(1)} s\n`);
  const pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  const probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token, keep: false });
  const vitalsTarget = { pid: pod.proxy.pid, healthUrl: pod.healthUrl, folder: preload.folder, serverMetrics: async () => "" };
  const one = "/api/v1/namespaces/canary-0/configmaps/cm-000000";
  const probed = [
    { name: "GET of an object", url: `${pod.proxyUrl}${one}`, ca: pod.proxyCaPem },
    { name: "the same, direct", url: `${kube.server}${one}`, ca: kube.caPem },
    { name: "health port", url: `${pod.healthUrl}/healthz`, ca: "" },
  ];
  for (const accept of ["application/json", "application/vnd.kubernetes.protobuf"]) {
    const list = () => probe.get(PATH, { accept });
    await list(); // so that the code is compiled
    await readVitals(vitalsTarget);
    const probes = probed.map(({ name, url, ca }) => startProbe(name, { url, ca, token: kube.token }));
    const times: number[] = [];
    const sizes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      times.push(await elapsedMs(async () => void sizes.push((await list()).body.length)));
    }
    const outside = await Promise.all(probes.map((stop) => stop()));
    const { late: eventLoop, rssMb } = await readVitals(vitalsTarget);
    const report = {
      accept,
      objects,
      rounds,
      listMs: times.map(Math.round),
      bytes: sizes[0] ?? 0,
      eventLoop,
      outside,
      rssMb,
    };
    process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : `${lines(report)}\n`);
  }
  await probe.close();
} finally {
  preload.stop();
  await mesh.stop();
  await kube.stop();
  remove();
}

interface Report {
  readonly accept: string;
  readonly listMs: readonly number[];
  readonly bytes: number;
  readonly eventLoop: { readonly p50Ms: number; readonly p99Ms: number; readonly maxMs: number };
  readonly outside: readonly (Probed & { readonly name: string })[];
  readonly rssMb: number;
}

function lines({ accept, listMs, bytes, eventLoop, outside, rssMb }: Report): string {
  const delay = ({ p50Ms, p99Ms, maxMs }: Probed | Report["eventLoop"]) =>
    `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, max ${maxMs.toFixed(1)} ms`;
  return [
    `${accept}: ${listMs.length} lists in ${listMs.join(", ")} ms, ${(bytes / 1e6).toFixed(1)} MB kept; RSS afterwards ${rssMb} MB`,
    `  event loop delayed  ${delay(eventLoop)}`,
    ...outside.map((each) => `  ${each.name.padEnd(18)}  ${delay(each)} (${each.count} times)`),
  ].join("\n");
}

/** Starts probe.ts in a thread. The returned function stops the thread and returns its result. */
function startProbe(name: string, workerData: object): () => Promise<Probed & { name: string }> {
  const worker = new Worker(new URL("./probe.ts", import.meta.url), { workerData });
  return () =>
    new Promise((resolve, reject) => {
      worker.once("message", (probed: Probed) => resolve({ name, ...probed }));
      worker.once("error", reject);
      worker.postMessage("stop");
    });
}

async function elapsedMs(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

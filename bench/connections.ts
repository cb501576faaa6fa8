// `node bench/connections.ts`: compares watches over shared HTTP/2 connections with HTTP/1.1, where each
// watch has its own connection. The same load runs on two control planes, one with --disable-http2-serving.
// First fifty informers list and watch at once while a lock is renewed. After an idle time all informers get
// events, and at last a thousand watches are aborted. docs/decisions/0009 has the figures.
//
// Options: --informers N, --rate N (updates/s, each an event for every watch), --seconds N, --objects N,
// --rounds N.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { parseArgs } from "node:util";
import { CONFIG_MAPS } from "../src/kube/client/resources.ts";
import { demoVirtualApp } from "../test/support/demo-app.ts";
import { eventually } from "../test/support/eventually.ts";
import { type Kube, startKube } from "../test/support/kube.ts";
import { createManyConfigMaps } from "../test/support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../test/support/mesh.ts";
import { memoryOf } from "../test/support/process-memory.ts";

const { values } = parseArgs({
  options: {
    informers: { type: "string", default: "50" },
    rate: { type: "string", default: "40" },
    seconds: { type: "string", default: "10" },
    objects: { type: "string", default: "500" },
    rounds: { type: "string", default: "1" },
  },
});
const { informers, rate, seconds, objects, rounds } = {
  informers: Number(values.informers),
  rate: Number(values.rate),
  seconds: Number(values.seconds),
  objects: Number(values.objects),
  rounds: Number(values.rounds),
};
const CONFIG_MAP = "/api/v1/configmaps";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/foo-system/leases/foo-operator";

interface Client {
  open(path: string): Promise<IncomingMessage>;
  get(path: string): Promise<{ status: number; body: string }>;
  close(): void;
}

for (const protocol of Array.from({ length: rounds }, () => ["HTTP/2", "HTTP/1.1"] as const).flat()) {
  const kube = await startKube(protocol === "HTTP/2" ? {} : { apiServerArgs: ["--disable-http2-serving"] });
  const mesh = await startMesh({ kube });
  try {
    await mesh.apply(demoVirtualApp());
    await mesh.createNamespace("canary-0");
    await createManyConfigMaps(mesh.client, { count: objects, namespaces: ["canary-0"] });
    const pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    process.stdout.write(`${protocol}\n`);
    for (const [name, value] of Object.entries(await measure(kube, mesh, pod)))
      process.stdout.write(`  ${name.padEnd(54)} ${value}\n`);
  } finally {
    await mesh.stop();
    await kube.stop();
  }
}

async function measure(kube: Kube, mesh: Mesh, pod: MeshPod): Promise<Record<string, string | number>> {
  const { pid } = pod.proxy;
  const client = createClient(pod, kube.token);
  const port = Number(new URL(kube.server).port);
  const before = memoryOf(pid).rssMb;
  const { metadata } = JSON.parse((await client.get(`${CONFIG_MAP}?limit=1`)).body) as { metadata: { resourceVersion: string } };
  const quiet: IncomingMessage[] = [];
  for (let index = 0; index < informers; index++)
    quiet.push(await client.open(`${CONFIG_MAP}?watch=1&resourceVersion=${metadata.resourceVersion}`));
  await pause(3_000);
  const idle = memoryOf(pid).rssMb;
  for (const res of quiet) res.destroy();
  const peak = { connections: 0 };
  const poll = setInterval(() => {
    peak.connections = Math.max(peak.connections, connectionsTo(pid, port));
  }, 5);
  const renewals: number[] = [];
  let renewing = true;
  const renew = async () => {
    for (; renewing; await pause(100)) renewals.push(await timed(() => client.get(LEASE)));
  };
  const renewed = renew();
  const started = performance.now();
  const watches = await Promise.all(Array.from({ length: informers }, () => startInformer(client)));
  const synced = performance.now() - started;
  await pause(3_000);
  renewing = false;
  await renewed;
  clearInterval(poll);
  const openConnections = connectionsTo(pid, port);
  const metrics = await (await fetch(`${pod.healthUrl}/metrics`)).text();
  const gauges = metrics.matchAll(/^ctrlmesh_proxy_upstream_connections\{pool="(\w+)"\} ([1-9]\d*)$/gm);
  const byPool = [...gauges].map(([, pool, count]) => `${pool} ${count}`).join(", ");

  const cpuBefore = cpuMs(pid);
  await update(mesh, rate * seconds, rate);
  const events = informers * rate * seconds;
  await eventually(() => watches.every(({ latencies }) => latencies.length >= rate * seconds), 20_000);
  const cpu = cpuMs(pid) - cpuBefore;
  const latencies = watches.flatMap((watch) => watch.latencies);
  const busy = memoryOf(pid).rssMb;

  const abortCpu = cpuMs(pid);
  for (let round = 0; round < 20; round++) {
    const opened = await Promise.all(Array.from({ length: 50 }, () => client.open(`${CONFIG_MAP}?watch=1&resourceVersion=0`)));
    for (const res of opened) res.destroy();
  }
  await pause(2_000);
  const aborted = { cpu: cpuMs(pid) - abortCpu, connections: connectionsTo(pid, port), rss: memoryOf(pid).rssMb };
  client.close();
  return {
    "most connections during the start": peak.connections,
    "connections with all watches open": `${openConnections} (${byPool})`,
    "time until all informers have synced, ms": Math.round(synced),
    "lock renewals during the start, p50 / max ms": `${percentile(renewals, 50)} / ${percentile(renewals, 100)}`,
    "RSS before / with idle watches without a list, MB": `${before} / ${idle}`,
    "events a second, CPU of the proxy per event, us": `${rate * informers}, ${((cpu * 1000) / events).toFixed(1)}`,
    "event latency p50 / p99 ms": `${percentile(latencies, 50)} / ${percentile(latencies, 99)}`,
    "RSS after events, MB": busy,
    "1,000 aborted watches: CPU ms / connections / RSS": `${aborted.cpu} / ${aborted.connections} / ${aborted.rss}`,
  };
}

// Lists and watches, and records the age of each event on arrival.
async function startInformer(client: Client): Promise<{ readonly latencies: number[] }> {
  const list = JSON.parse((await client.get(CONFIG_MAP)).body) as { metadata: { resourceVersion: string } };
  const res = await client.open(`${CONFIG_MAP}?watch=1&resourceVersion=${list.metadata.resourceVersion}`);
  const latencies: number[] = [];
  let incomplete = "";
  res.setEncoding("utf8").on("data", (text: string) => {
    const lines = (incomplete + text).split("\n");
    incomplete = lines.pop() ?? "";
    for (const line of lines) {
      const sentAt = /"sent-at":"([\d.]+)"/.exec(line)?.[1];
      if (sentAt !== undefined) latencies.push(performance.timeOrigin + performance.now() - Number(sentAt));
    }
  });
  res.on("error", () => undefined);
  return { latencies };
}

async function update(mesh: Mesh, count: number, perSecond: number): Promise<void> {
  const started = performance.now();
  const pending: Promise<unknown>[] = [];
  for (let index = 0; index < count; index++) {
    const due = started + (index * 1000) / perSecond;
    if (performance.now() < due) await pause(due - performance.now());
    const data = { "sent-at": String(performance.timeOrigin + performance.now()) };
    const name = `cm-${String(index % objects).padStart(6, "0")}`;
    pending.push(mesh.client.patch(CONFIG_MAPS, { namespace: "canary-0", name }, { type: "merge", body: { data } }));
  }
  await Promise.all(pending);
}

function createClient(pod: MeshPod, token: string): Client {
  const agent = new Agent({ keepAlive: true, ca: pod.proxyCaPem });
  const open = (path: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const url = new URL(path, pod.proxyUrl);
      request(url, { agent, headers: { authorization: `Bearer ${token}`, accept: "application/json" } })
        .once("response", resolve)
        .on("error", reject)
        .end();
    });
  return {
    open,
    async get(path) {
      const res = await open(path);
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk as Buffer);
      return { status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString() };
    },
    close: () => agent.destroy(),
  };
}

/** The process's established connections to the port, from the kernel's tables. */
function connectionsTo(pid: number, port: number): number {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const socket = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`));
    if (socket?.[1] !== undefined) inodes.add(socket[1]);
  }
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  let count = 0;
  for (const line of readFileSync(`/proc/${pid}/net/tcp`, "latin1").split("\n").slice(1)) {
    const fields = line.trim().split(/\s+/);
    if (fields[2]?.endsWith(wanted) && fields[3] === "01" && inodes.has(fields[9] ?? "")) count++;
  }
  return count;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // the file has just been closed
  }
}

/** User and system time of the process so far. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10; // the kernel counts in hundredths of a second
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await run();
  return performance.now() - started;
}

function percentile(samples: readonly number[], percent: number): string {
  const sorted = [...samples].sort((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN).toFixed(2);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

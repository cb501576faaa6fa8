// `node bench/slices.ts`: measures what OwnershipSlices cost the API server and the manager: one manager and the real control
// plane (test/kube). The apps have no pods, so that a move is over at once; with pods a move that takes longer than a second is
// a second write of the same slice. A row is one minute: the slices written, their bytes as JSON, as etcd has them, and the
// processor time of the manager. The last lines have what is stored.
//
// Options: --namespaces N (default 10000), --apps N, each in a namespace of its own (200), --off: without slices, --json.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { OWNERSHIP_SLICES, VIRTUAL_APPS } from "../src/api/resources.ts";
import { createKubeClient } from "../src/kube/client/client.ts";
import { NAMESPACES } from "../src/kube/client/resources.ts";
import { startChild } from "../test/support/child-process.ts";
import { startKube } from "../test/support/kube.ts";
import { kubectl } from "../test/support/kubectl.ts";
import { prepareCluster } from "../test/support/mesh/cluster.ts";
import { cpuSecondsOf, memoryOf } from "../test/support/process-memory.ts";
import { programMain } from "../test/support/programs.ts";
import { sampleVirtualApp } from "../test/support/virtual-app.ts";

const MINUTE_MS = 60_000;
const CREATED_AT_ONCE = 16;

const { values } = parseArgs({
  options: {
    namespaces: { type: "string", default: "10000" },
    apps: { type: "string", default: "200" },
    off: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const [namespaces, apps] = [Number(values.namespaces), Number(values.apps)];
const note = (text: string) => void process.stderr.write(`slices: ${text}\n`);
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

interface Row {
  readonly what: string;
  readonly seconds: number;
  readonly writes: number;
  readonly kilobytes: number;
  readonly managerCpuSeconds: number;
}
const rows: Row[] = [];

const kube = await startKube();
const client = createKubeClient({ server: kube.server, caPem: kube.caPem, token: () => kube.token, userAgent: "bench" });
const watching = new AbortController();
const seen = { writes: 0, bytes: 0 };
try {
  await prepareCluster(kube, "foo-system");
  await inParallel(numbers(namespaces), (at) => client.create(NAMESPACES, { metadata: { name: `team-of-users-${at}` } }));
  await inParallel(numbers(apps), makeApp);
  note(`${namespaces} namespaces, ${apps} apps`);
  const storedBefore = await storageBytes();
  void count();
  const manager = await startManager();
  const first = await measured("at first, until all are written", manager.pid, () =>
    values.off ? sleep(2 * MINUTE_MS) : untilQuiet(),
  );
  note(`all written after ${first.seconds} s`);
  const stored = { slices: (await client.list(OWNERSHIP_SLICES)).items.length, bytes: seen.bytes };
  await measured("quiet", manager.pid, () => sleep(MINUTE_MS));
  await measured("a namespace moves, then the other way, each second", manager.pid, () =>
    eachSecond((second) => label(`team-of-users-${Math.floor(second / 2) % namespaces}`, second % 2 === 0)),
  );
  await untilQuiet();
  await measured("10 namespaces move at once, each 10 s", manager.pid, () =>
    eachSecond(async (second) => {
      if (second % 10 !== 0) return;
      for (const at of numbers(10)) await label(`team-of-users-${(second * 97 + at * 811) % namespaces}`, true);
    }),
  );
  await untilQuiet();
  await measured("a namespace is born each second", manager.pid, () =>
    eachSecond((second) => client.create(NAMESPACES, { metadata: { name: `born-${second}` } })),
  );
  await untilQuiet();
  const memory = memoryOf(manager.pid);
  print(stored, (await storageBytes()) - storedBefore, memory);
  await manager.stop(5_000);
} finally {
  watching.abort();
  await client.close();
  await kube.stop();
}

function print(stored: { slices: number; bytes: number }, fileBytes: number, memory: ReturnType<typeof memoryOf>): void {
  const summary = { ...stored, fileBytes, ...memory };
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ namespaces, apps, rows, ...summary })}\n`);
    return;
  }
  const head = ["", "SECONDS", "WRITES", "KB", "MANAGER CPU (s)"];
  const cells = rows.map((row) => [row.what, row.seconds, row.writes, row.kilobytes, row.managerCpuSeconds].map(String));
  for (const [what = "", ...others] of [head, ...cells])
    process.stdout.write(`${what.padEnd(52)}${others.map((cell) => cell.padStart(16)).join("")}\n`);
  const mega = (bytes: number) => (bytes / 1e6).toFixed(1);
  process.stdout.write(
    `stored: ${stored.slices} slices of ${mega(stored.bytes)} MB; the file of etcd grew by ${mega(fileBytes)} MB\n`,
  );
  process.stdout.write(`manager: ${memory.rssMb} MB now, ${memory.peakMb} MB at most\n`);
}

async function measured(what: string, pid: number, run: () => Promise<unknown>): Promise<Row> {
  const [startMs, cpu, before] = [performance.now(), cpuSecondsOf(pid), { ...seen }];
  await run();
  const row = {
    what,
    seconds: Math.round((performance.now() - startMs) / 1000),
    writes: seen.writes - before.writes,
    kilobytes: Math.round((seen.bytes - before.bytes) / 1000),
    managerCpuSeconds: Math.round((cpuSecondsOf(pid) - cpu) * 10) / 10,
  };
  rows.push(row);
  note(JSON.stringify(row));
  return row;
}

/** Counts what is written, from a watch, which has the objects as they are stored. */
async function count(): Promise<void> {
  let { resourceVersion } = (await client.list(OWNERSHIP_SLICES)).metadata;
  while (!watching.signal.aborted) {
    try {
      const from = resourceVersion === undefined ? {} : { resourceVersion };
      for await (const { type, object } of client.watch(OWNERSHIP_SLICES, { ...from, signal: watching.signal })) {
        resourceVersion = object.metadata.resourceVersion;
        if (type === "BOOKMARK") continue;
        seen.writes++;
        if (type !== "DELETED") seen.bytes += JSON.stringify(object).length;
      }
    } catch (error) {
      if (!watching.signal.aborted) note(String(error));
    }
  }
}

/** No slice was written for 20 s, and some were, unless there are none. */
async function untilQuiet(): Promise<void> {
  for (let before = -1; values.off === false && (before !== seen.writes || seen.writes === 0); ) {
    before = seen.writes;
    await sleep(20_000);
  }
}

async function eachSecond(run: (second: number) => Promise<unknown>): Promise<void> {
  const startMs = performance.now();
  for (const second of numbers(60)) {
    await run(second);
    await sleep(Math.max(0, startMs + (second + 1) * 1_000 - performance.now()));
  }
}

function label(name: string, isCanary: boolean): Promise<unknown> {
  const labels = { "ns-type": isCanary ? "canary" : null };
  return client.patch(NAMESPACES, { name }, { type: "merge", body: { metadata: { labels } } });
}

async function makeApp(at: number): Promise<void> {
  const namespace = `operator-${at}`;
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  const match = [{ namespaceSelector: { matchLabels: { "ns-type": "canary" } } }];
  const app = sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match }] } });
  await client.create(VIRTUAL_APPS, { ...app, metadata: { namespace, name: "shop" } } as never);
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(numbers(CREATED_AT_ONCE).map(worker));
}

/** The size of etcd's file, with what is deleted and not compacted yet. */
async function storageBytes(): Promise<number> {
  const text = await kubectl(kube.kubeconfig, ["get", "--raw", "/metrics"]);
  return Number(/^apiserver_storage_size_bytes\{[^}]*\} (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
}

function startManager() {
  const listen = ["--grpc-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--api-server-token-cache-ms", "1000"];
  const args = [
    programMain("manager"),
    "--print-ready",
    "--kubeconfig",
    kube.kubeconfig,
    ...listen,
    `--ownership-slices=${!values.off}`,
  ];
  return startChild({ name: "manager", command: process.execPath, args });
}

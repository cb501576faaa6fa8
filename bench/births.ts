// `node bench/births.ts`: counts what the manager asks of the API server for a birth of a namespace, a new label
// of a namespace, and a pod that becomes unready: one manager, localkube, and a simulated proxy for each shard.
//
// Options: --shards N of each family (default 64), --families N, each in a namespace of its own (1),
// --namespaces N (1000), --rounds N (5), --by-hand: hand-written configs in place of a root, --json.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { INJECTED_LABEL } from "../src/api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../src/api/resources.ts";
import type { ShardingConfig } from "../src/api/sharding-config.ts";
import { createKubeClient } from "../src/kube/client/client.ts";
import { NAMESPACES, PODS, STATEFUL_SETS } from "../src/kube/client/resources.ts";
import { conditionOf } from "../src/manager/status/facts.ts";
import { startFleet } from "../test/fleet/fleet.ts";
import type { FleetPod } from "../test/fleet/worker.ts";
import { createLocalKube } from "../test/localkube/localkube.ts";
import { startChild } from "../test/support/child-process.ts";
import { eventually } from "../test/support/eventually.ts";
import { sampleShardingConfig, sampleShardingRoot } from "../test/support/sharding-config.ts";

const REPOSITORY = fileURLToPath(new URL("../", import.meta.url));
/** The longest time for which the manager shows something late, and some more. */
const QUIET_MS = 6_500;
const { values } = parseArgs({
  options: {
    shards: { type: "string", default: "64" },
    families: { type: "string", default: "1" },
    namespaces: { type: "string", default: "1000" },
    rounds: { type: "string", default: "5" },
    "by-hand": { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const numberOf = (name: "shards" | "families" | "namespaces" | "rounds"): number => {
  const value = Number(values[name]);
  if (Number.isInteger(value) && value >= 1) return value;
  process.stderr.write(`births: --${name} must be a positive integer\n`);
  process.exit(64);
};
const [shards, families] = [numberOf("shards"), numberOf("families")];
const [namespaces, rounds] = [numberOf("namespaces"), numberOf("rounds")];
const isByHand = values["by-hand"];
const note = (text: string) => void process.stderr.write(`births: ${text}\n`);
const familyName = (family: number) => `op-${family}`;
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-births-"));
const kube = createLocalKube({ audit: { size: 100_000 } });
await kube.start(new AbortController().signal);
const client = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "bench" });
const kubeconfig = join(dir, "kubeconfig");
writeFileSync(kubeconfig, kube.kubeconfigYaml);
const rows: { what: string; requests: Record<string, number> }[] = [];
try {
  await define();
  note(`${families} families of ${shards} shards, ${namespaces} namespaces`);
  for (const name of [
    "ctrlmesh-system",
    ...numbers(families).map(familyName),
    ...numbers(namespaces).map((at) => `team-${at}`),
  ]) {
    await client.create(NAMESPACES, { metadata: { name } });
  }
  const pods: FleetPod[] = [];
  for (const family of numbers(families)) {
    await makeFamily(familyName(family));
    for (const shard of numbers(shards)) pods.push(await makePod(familyName(family), shard));
  }
  const manager = await startManager();
  const fleet = startFleet({ pods, endpoints: [String(manager.ready.grpc)], processes: 1, trustPem: undefined });
  await fleet.served();
  await eventually(areAllInSync, 300_000);
  await quiet();
  await measure("birth of a namespace", (round) => client.create(NAMESPACES, { metadata: { name: `born-${round}` } }));
  const relabel = (round: number) => ({ type: "merge" as const, body: { metadata: { labels: { round: String(round) } } } });
  await measure("new label of a namespace", (round) => client.patch(NAMESPACES, { name: "team-0" }, relabel(round)));
  await measure("pod becomes unready, or ready again", (round) => setReady(familyName(0), `${familyName(0)}-0`, round % 2 === 1));
  fleet.stop();
  await manager.stop(5_000);
} finally {
  await client.close();
  await kube.stop();
  rmSync(dir, { recursive: true, force: true });
}
const lines = rows.map(
  ({ what, requests }) =>
    `${what.padEnd(40)}${Object.entries(requests)
      .map(([request, count]) => `${request} ${count}`)
      .join(", ")}`,
);
process.stdout.write(values.json ? `${JSON.stringify({ shards, families, namespaces, rows })}\n` : `${lines.join("\n")}\n`);

/** Counts the manager's requests for one change, as the mean of the rounds. */
async function measure(what: string, change: (round: number) => Promise<unknown>): Promise<void> {
  const counts: Record<string, number> = {};
  for (const round of numbers(rounds)) {
    const before = managerRequests().length;
    await change(round);
    await quiet();
    for (const request of managerRequests().slice(before)) counts[request] = (counts[request] ?? 0) + 1 / rounds;
  }
  const rounded = Object.entries(counts).map(([request, count]) => [request, Math.round(count * 100) / 100] as const);
  rows.push({ what, requests: Object.fromEntries(rounded) });
}

/** What the manager asked for, but its lease and the watches that it renews. */
function managerRequests(): string[] {
  return kube
    .audit()
    .filter(
      ({ userAgent, verb, resource }) => userAgent.startsWith("ctrlmesh-manager") && verb !== "watch" && resource !== "leases",
    )
    .map(({ verb, resource, subresource, code }) => {
      const what = `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`}`;
      return code < 400 ? what : `${what} refused with ${code}`;
    });
}

async function quiet(): Promise<void> {
  for (let before = -1, now = managerRequests().length; before !== now; now = managerRequests().length) {
    before = now;
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

async function define(): Promise<void> {
  const folder = join(REPOSITORY, "deploy/crds");
  for (const file of readdirSync(folder)) {
    const body = parse(readFileSync(join(folder, file), "utf8"));
    await client.request({ method: "POST", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body });
  }
  await eventually(() => client.list(SHARDING_CONFIGS));
}

async function makeFamily(name: string): Promise<void> {
  const controller = { leaderElectionName: name };
  const meta = { namespace: name, name };
  const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: "operator", image: "x" }] } };
  const spec = { replicas: shards, serviceName: name, selector: { matchLabels: { app: name } }, template };
  await client.create(STATEFUL_SETS, { metadata: meta, spec } as never);
  if (!isByHand) {
    const auto = { everyShardReplicas: 1 };
    const root = { prefix: name, targetStatefulSet: name, placement: "Balanced", canary: undefined, auto };
    await client.create(SHARDING_CONFIGS, asConfig({ ...sampleShardingRoot(root, { controller }), metadata: meta }));
    return;
  }
  for (const shard of numbers(shards)) {
    const selector = { matchLabels: { "statefulset.kubernetes.io/pod-name": `${name}-${shard}` } };
    const own = numbers(namespaces).filter((at) => at % shards === shard);
    const values = own.slice(0, 500).map((at) => `team-${at}`);
    const expression = { key: "ctrlmesh.kusionstack.io/namespace", operator: "In", values };
    const resources = [{ apiGroups: [""], resources: ["pods"] }];
    const limits = [{ relateResources: resources, selector: { matchExpressions: [expression] } }];
    const config = sampleShardingConfig({ controller, selector, limits });
    await client.create(SHARDING_CONFIGS, asConfig({ ...config, metadata: { namespace: name, name: `${name}-s${shard}` } }));
  }
}

/** Without the fields that are undefined. */
function asConfig(object: object): ShardingConfig {
  return JSON.parse(JSON.stringify(object));
}

async function makePod(family: string, shard: number) {
  const name = `${family}-${shard}`;
  const labels = { app: family, "statefulset.kubernetes.io/pod-name": name, [INJECTED_LABEL]: family };
  const initContainers = [{ name: "ctrlmesh-proxy", image: "x", restartPolicy: "Always" }];
  const spec = { nodeName: "n", containers: [{ name: "operator", image: "x" }], initContainers };
  const pod = await client.create(PODS, { metadata: { namespace: family, name, labels }, spec } as never);
  await setReady(family, name, true);
  return { namespace: family, name, uid: pod.metadata.uid ?? "", token: undefined };
}

async function setReady(namespace: string, name: string, isReady: boolean): Promise<void> {
  const proxy = { name: "ctrlmesh-proxy", ready: true, started: true, restartCount: 0, image: "", imageID: "" };
  const conditions = [{ type: "Ready", status: isReady ? "True" : "False" }];
  const body = { status: { phase: "Running", conditions, initContainerStatuses: [proxy] } };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

async function areAllInSync(): Promise<boolean> {
  const { items } = await client.list(SHARDING_CONFIGS);
  const inSync = items.filter(({ status }) => conditionOf(status, "Converged")?.status === "True");
  return inSync.length === families;
}

function startManager() {
  const main = join(REPOSITORY, "src/manager/main.ts");
  const listen = ["--grpc-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--api-server-token-cache-ms", "1000"];
  const args = [main, "--print-ready", "--kubeconfig", kubeconfig, "--pod-name", "ctrlmesh-manager-0", ...listen];
  return startChild({ name: "manager", command: process.execPath, args });
}

// 32 other clusters whose API servers are up and down in turn, with ever new certificates, errors and namespaces, and a kubeconfig that is
// edited each second. The manager is the real program, with simulated proxies. The audit log of home tells what that costs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { MESH_CLUSTERS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { SECRETS } from "../../src/kube/client/resources.ts";
import { type FleetWorld, namespaceOf, startFleetWorld } from "../fleet/fleet-world.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { cpuSecondsOf, memoryOf } from "../support/process-memory.ts";

const CLUSTERS = 32;
const PROXIES = 8;
const SECONDS = 60;
/** The first app divides the clusters, and the other one does not. */
const APP = { namespace: "operator-0", name: "operator-0" };
const OTHER = { namespace: "operator-1", name: "operator-1" };
/** Within this time after the servers are calm everything is right: watches pause for up to 30 s, and Secrets are read as often. */
const CALM_MS = 75_000;

interface Server {
  readonly url: string;
  readonly ca: string;
}

let world: FleetWorld;
let servers: Child;
const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-flapping-"));
const auditLog = join(folder, "audit.log");

beforeAll(async () => {
  const main = join(import.meta.dirname, "../support/flapping/main.ts");
  const args = ["-n", "10", process.execPath, main, String(CLUSTERS)];
  servers = await startChild({ name: "clusters", command: "nice", args });
  world = await startFleetWorld({ proxies: PROXIES, namespaces: 100, apps: 2, identity: "none", auditLog });
}, 60_000);
afterAll(async () => {
  await world?.stop();
  await servers?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const nameOf = (index: number) => `c-${index}`;
const kubeconfigOf = ({ url, ca }: Server) =>
  stringify({
    clusters: [{ name: "c", cluster: { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") } }],
    users: [{ name: "c", user: { token: "t" } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
    "current-context": "c",
  });
const secretOf = (index: number, text: string) => ({
  metadata: { namespace: APP.namespace, name: nameOf(index) },
  data: { kubeconfig: Buffer.from(text).toString("base64") },
});

/** How often the manager has made each kind of request, such as "patch meshclusters c-1". */
function requests(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of readFileSync(auditLog, "utf8").split("\n").slice(0, -1)) {
    const { verb, userAgent, objectRef = {} } = JSON.parse(line);
    const kind = `${verb} ${objectRef.resource} ${objectRef.name ?? ""}`;
    if (userAgent.startsWith("ctrlmesh-manager")) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

async function divideClusters(all: readonly Server[]): Promise<void> {
  const { client } = world;
  for (const [index, server] of all.entries()) {
    await client.create(SECRETS, secretOf(index, kubeconfigOf(server)));
    await client.create(MESH_CLUSTERS, {
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "MeshCluster",
      metadata: { namespace: APP.namespace, name: nameOf(index) },
      spec: { servers: [server.url], interception: "Terminate", terminate: { kubeconfigSecret: nameOf(index) } },
    });
  }
  const match = [{ clusterSelector: {}, namespaceRegex: "^team-1|^flap" }];
  const body = { spec: { route: { subRules: [{ name: "canary", match }] } } };
  await client.patch(VIRTUAL_APPS, APP, { type: "merge", body });
}

/** Makes the kubeconfig of the first cluster bad, then missing, then good. */
async function editSecret(round: number, good: string): Promise<void> {
  const { client } = world;
  const { metadata, ...secret } = secretOf(0, round % 3 === 0 ? "{}" : good);
  if (round % 3 === 0) await client.patch(SECRETS, metadata, { type: "merge", body: secret });
  if (round % 3 === 1) await client.delete(SECRETS, metadata);
  if (round % 3 === 2) await client.create(SECRETS, { metadata, ...secret });
}

/** Moves a namespace of the app that divides no cluster. Returns the milliseconds until its status says so. */
async function moveElsewhere(round: number): Promise<number> {
  const startMs = performance.now();
  await world.relabel(namespaceOf(1), round % 2 === 0 ? "canary" : null);
  await eventually(async () => {
    const { status } = await world.client.get(VIRTUAL_APPS, OTHER);
    const { namespaces } = status?.subsets?.find(({ name }) => name === "canary") ?? {};
    expect(namespaces).toBe(round % 2 === 0 ? 11 : 10);
  }, 30_000);
  return performance.now() - startMs;
}

test("32 flapping clusters cost home and the pods a bounded rate of requests, delay no other app, and are right once they are calm", async () => {
  const all = servers.ready.servers as readonly Server[];
  const [first] = all;
  await divideClusters(all);
  await moveElsewhere(0);
  await moveElsewhere(1);
  const manager = await world.leader();
  if (first === undefined || manager === undefined) throw new Error("nothing runs");
  const look = async () => {
    const { wholes, deltas } = await world.fleet.counts();
    return { requests: requests(), routes: (wholes + deltas) / PROXIES, cpu: cpuSecondsOf(manager.pid), atMs: performance.now() };
  };
  const before = await look();
  const statusMs: number[] = [];
  for (let round = 0; performance.now() < before.atMs + SECONDS * 1_000 || round % 3 > 0; round++) {
    await editSecret(round, kubeconfigOf(first));
    statusMs.push(await moveElsewhere(round));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  const after = await look();
  const seconds = (after.atMs - before.atMs) / 1_000;
  const perSecond = (pattern: RegExp) => {
    const made = [...after.requests].filter(([kind]) => pattern.test(kind));
    return made.reduce((sum, [kind, count]) => sum + count - (before.requests.get(kind) ?? 0), 0) / seconds;
  };
  const measured = {
    routesToEachPod: (after.routes - before.routes) / seconds,
    requests: perSecond(/^/),
    lists: perSecond(/^list/),
    statusOfOneCluster: Math.max(...all.map((_, index) => perSecond(new RegExp(`^patch meshclusters ${nameOf(index)}$`)))),
    statusOfApp: perSecond(/^patch virtualapps operator-0$/),
    secrets: perSecond(/^get secrets/),
    slowestOtherMs: Math.max(...statusMs),
    cpu: (after.cpu - before.cpu) / seconds,
    ...memoryOf(manager.pid),
  };
  process.stderr.write(`${JSON.stringify(measured)}\n`);
  expect(measured.routesToEachPod).toBeLessThan(3);
  expect(measured.requests).toBeLessThan(60);
  expect(measured.lists).toBeLessThan(6);
  expect(measured.statusOfOneCluster).toBeLessThan(22 / 60);
  expect(measured.statusOfApp).toBeLessThan(10);
  expect(measured.secrets).toBeLessThan(CLUSTERS / 2);
  expect(measured.slowestOtherMs).toBeLessThan(5_000);
  expect(measured.peakMb).toBeLessThan(768);
  servers.kill("SIGUSR2");
  const calmMs = performance.now();
  await eventually(async () => {
    const { items } = await world.client.list(MESH_CLUSTERS, { namespace: APP.namespace });
    for (const { status } of items) {
      expect(status?.conditions?.find(({ type }) => type === "NamespacesWatched")?.reason).toBe("Listed");
      expect(status?.namespaces).toMatchObject([{ total: 50, owned: [{ count: 39 }, { subset: "canary", count: 11 }] }]);
    }
  }, CALM_MS);
  process.stderr.write(`calm after ${Math.round(performance.now() - calmMs)} ms\n`);
}, 300_000);

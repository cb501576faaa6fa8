// A controller-runtime client with EnableReadYourWritesConsistency behind the proxies of two subsets: each read waits until the cache has
// seen the client's own writes. The reads must have these writes, and must not wait longer than without a proxy, also while other
// subsets write much and while a namespace is lost in place.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const CANARY = { "ns-type": "canary-1" };

/** Longer than any event takes on a busy machine, and shorter than the pause between two bookmarks. */
const MAX_READ_MS = 5_000;

interface Step {
  readonly namespace: string;
  readonly step: string;
  readonly ms: number;
  readonly error?: string;
  readonly code?: number;
  readonly atMs: number;
}

interface Consistent {
  readonly steps: Step[];
  /** The last version that the store reported, and when. */
  readonly store: { version: bigint; atMs: number };
  readonly child: Child;
}

async function startConsistent(
  name: string,
  kubeconfig: string,
  namespaces: readonly string[],
  pause = "20ms",
): Promise<Consistent> {
  const steps: Step[] = [];
  const store = { version: 0n, atMs: 0 };
  const child = await startChild({
    name,
    command: await goProgram("test/operators/go-consistent"),
    args: [`--namespaces=${namespaces.join(",")}`, `--pause=${pause}`],
    env: { KUBECONFIG: kubeconfig, POD_NAME: name },
    readyLine: false,
    onLine(line) {
      if (!line.startsWith("{")) return;
      const said = JSON.parse(line) as Step & { version?: string };
      if (said.step !== undefined) steps.push({ ...said, ms: said.ms ?? 0, atMs: Date.now() });
      if (said.version !== undefined) Object.assign(store, { version: BigInt(said.version), atMs: Date.now() });
    },
  });
  return { steps, store, child };
}

const isRead = ({ step }: Step) => step === "get" || step === "list";
const reads = ({ steps }: Consistent) => steps.filter(isRead);
const percentile = (values: readonly number[], part: number) =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? Number.NaN;

/** Every read had the write before it, and none waited for another event than that of its own write. */
function expectFast(client: Consistent): void {
  const isEnd = ({ error = "" }: Step) => /terminated signal|context canceled/.test(error);
  expect(reads(client).filter((step) => step.error !== undefined && !isEnd(step))).toEqual([]);
  expect(reads(client).filter(({ ms }) => ms > MAX_READ_MS)).toEqual([]);
}

function figures(title: string, client: Consistent): string {
  const waits = reads(client).map(({ ms }) => ms);
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) => percentile(waits, part).toFixed(1));
  return `${title}: ${waits.length} reads, p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`;
}

describeWithKube("a client that reads its own writes", () => {
  let kube: Kube;
  let mesh: Mesh;
  const pods = {} as Record<"default" | "canary", MeshPod>;
  const clients: Consistent[] = [];
  let probe: Probe;

  async function start(...of: Parameters<typeof startConsistent>): Promise<Consistent> {
    const client = await startConsistent(...of);
    clients.push(client);
    return client;
  }
  const stop = (client: Consistent) => client.child.stop(5_000);

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "team-b", "canary-eu", "direct"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp({ onLoss: "InPlace" }));
    pods.default = await mesh.addPod({ name: "foo-0" });
    pods.canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    probe = createProbe({ url: pods.default.proxyUrl, caPem: pods.default.proxyCaPem, token: kube.token });
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "team-a", name: "first" } });
  }, 600_000);
  afterAll(async () => {
    await Promise.all(clients.map(stop));
    await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  it("waits as long as without a proxy, also while another subset writes all the time", async () => {
    const direct = await start("direct", kube.kubeconfig, ["direct"]);
    await eventually(() => expect(reads(direct).length).toBeGreaterThan(500), 60_000);
    await stop(direct);
    const alone = await start("alone", pods.canary.kubeconfig, ["canary-eu"]);
    await eventually(() => expect(reads(alone).length).toBeGreaterThan(500), 60_000);
    await stop(alone);
    const busy = await start("busy", pods.default.kubeconfig, ["team-a", "team-b"], "0");
    const beside = await start("beside", pods.canary.kubeconfig, ["canary-eu"]);
    await eventually(() => expect(reads(beside).length).toBeGreaterThan(500), 60_000);
    await Promise.all([stop(busy), stop(beside)]);
    console.log(
      [figures("direct", direct), figures("alone", alone), figures("busy", busy), figures("beside", beside)].join("\n"),
    );
    for (const client of [direct, alone, busy, beside]) expectFast(client);
  }, 200_000);

  it("never keeps a read for long after the subset has lost the namespace that it writes to", async () => {
    for (let move = 0; move < 6; move++) {
      const client = await start(`loser-${move}`, pods.default.kubeconfig, ["team-b"], "0");
      await eventually(() => expect(reads(client).length).toBeGreaterThan(60), 30_000);
      await mesh.labelNamespace("team-b", CANARY);
      const isRefused = () => client.steps.findIndex(({ code }) => code === 403);
      await eventually(() => expect(isRefused()).toBeGreaterThan(0), 20_000);
      // The client reads after each write, also after a refused one.
      await eventually(() => expect(client.steps.length).toBeGreaterThan(isRefused() + 10), 20_000);
      await stop(client);
      console.log(figures(`move ${move}`, client));
      expectFast(client);
      await mesh.labelNamespace("team-b", { "ns-type": null });
      await eventually(async () => {
        const { body } = await probe.get("/api/v1/configmaps?limit=500");
        expect(body.toString()).toContain('"namespace":"team-b"');
      }, 20_000);
    }
  }, 300_000);
});

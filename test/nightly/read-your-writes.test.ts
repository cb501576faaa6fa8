// A controller-runtime client with EnableReadYourWritesConsistency behind the proxies of two subsets: each read waits until the cache has
// seen the client's own writes. The reads must have these writes, and must not wait longer than without a proxy, also while other
// subsets write much and while a namespace is lost in place.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { type Consistent, expectFast, percentile, reads, startConsistent } from "../support/consistent-client.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

const CANARY = { "ns-type": "canary-1" };

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

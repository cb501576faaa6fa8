// The client of read-your-writes.test.ts, whose subset loses thirty namespaces at once, in place.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { moveTo, regexApp, setRegex } from "../handover/regex-app.ts";
import { type Consistent, expectFast, MAX_READ_MS, reads, startConsistent } from "../support/consistent-client.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("a client that reads its own writes", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let probe: Probe;
  const clients: Consistent[] = [];
  const names = Array.from({ length: 30 }, (_, index) => `hand-${index}`);
  const stop = (client: Consistent) => client.child.stop(5_000);

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    await mesh.apply(regexApp(mesh, "^nothing$"));
    pod = await mesh.addPod({ name: "foo-0", labels: { version: "v1" } });
    await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    for (const name of names) await mesh.createNamespace(name);
    probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token });
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "hand-0", name: "first" } });
  }, 600_000);
  afterAll(async () => {
    await Promise.all(clients.map(stop));
    await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  it.each([1, 30])(
    "never keeps a read for long after the subset has lost %i namespaces at once",
    async (count) => {
      const regex = count === 1 ? "^hand-0$" : "^hand-";
      for (let move = 0; move < 4; move++) {
        const client = await startConsistent(`loser-${count}-${move}`, pod.kubeconfig, ["hand-0"], "0");
        clients.push(client);
        await eventually(() => expect(reads(client).length).toBeGreaterThan(60), 30_000);
        await setRegex(mesh, regex);
        await sleep(10_000);
        // It reads after each write, also after a refused one.
        const silentMs = Date.now() - (client.steps.at(-1)?.atMs ?? 0);
        await stop(client);
        console.log(
          `${count} lost, move ${move}: ${reads(client).length} reads, max ${Math.max(...reads(client).map(({ ms }) => ms))} ms`,
        );
        expect(silentMs).toBeLessThan(MAX_READ_MS);
        expectFast(client);
        await moveTo(mesh, "^nothing$");
        await eventually(async () => {
          const { body } = await probe.get("/api/v1/configmaps?limit=500");
          expect(body.toString()).toContain('"namespace":"hand-0"');
        }, 20_000);
      }
    },
    300_000,
  );
});

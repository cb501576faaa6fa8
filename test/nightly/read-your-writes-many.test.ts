// The client of read-your-writes.test.ts, whose subset loses thirty namespaces at once, in place.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { moveTo, regexApp, setRegex } from "../handover/regex-app.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";

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

/** Every read had the write before it, and none waited for another event than that of its own write. */
function expectFast(client: Consistent): void {
  const isEnd = ({ error = "" }: Step) => /terminated signal|context canceled/.test(error);
  expect(reads(client).filter((step) => step.error !== undefined && !isEnd(step))).toEqual([]);
  expect(reads(client).filter(({ ms }) => ms > MAX_READ_MS)).toEqual([]);
}

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

// `ctrlmesh dashboard` when kubectl or the API server ends, on a real API server.
import { readdirSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { appIn, startDashboard } from "../support/dashboard-program.ts";
import { type DashboardStream, readDashboard } from "../support/dashboard-stream.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { childrenOf } from "../support/processes.ts";
import { describeWithKube } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };

describeWithKube("ctrlmesh dashboard on a bad day", () => {
  let kube: Kube;
  let mesh: Mesh;
  const closing: (() => void | Promise<void>)[] = [];

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "team-b", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    await mesh.addPod({ name: "foo-0" });
    await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  const start = (...args: string[]) => startDashboard({ KUBECONFIG: kube.kubeconfig }, args, closing);

  async function read(url: string): Promise<DashboardStream> {
    const seen = await readDashboard(url);
    closing.push(seen.close);
    return seen;
  }

  it("starts kubectl again if it ends, and the page goes on", async () => {
    const { url, child } = await start("-A");
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values(), APP.name) !== undefined && seen.ticks.length > 0, 20_000);
    const [kubectl] = childrenOf(child.pid ?? 0);
    process.kill(kubectl?.pid ?? 0, "SIGKILL");
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs !== undefined, 15_000);
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs === undefined, 15_000);
    expect(childrenOf(child.pid ?? 0)).toHaveLength(1);
  });

  it("ends with kubectl's own words if that cannot start", async () => {
    await expect(start("-A", "--context=nowhere")).rejects.toThrow(/nowhere/);
  });

  it("leaves nothing at SIGTERM either, and names the port in use", async () => {
    const { url, child, ended, folder } = await start("-n", APP.namespace);
    await expect(start("-A", "--port", new URL(url).port)).rejects.toThrow(/port \d+ is in use/);
    child.kill("SIGTERM");
    expect(await ended).toBe(143);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("keeps what was known while the API server is away, and goes on when it is back", async () => {
    const { url } = await start("-A");
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values(), APP.name) !== undefined && seen.ticks.length > 0, 20_000);
    await kube.crash();
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs !== undefined, 15_000);
    expect(appIn(seen.parts.values(), APP.name)).toBeDefined();
    await kube.restart();
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs === undefined, 15_000);
    await mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec: { route: { paused: true } } } });
    await eventually(() => appIn(seen.parts.values(), APP.name)?.isPaused === true, 15_000);
  });
});

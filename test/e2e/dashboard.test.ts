// `ctrlmesh dashboard` on a real API server, by way of the user's kubectl. What goes wrong later: test/nightly/dashboard-bad-days.test.ts.
import { readdirSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { bandsOf } from "../../src/cli/dashboard/model/bands.ts";
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import { appIn, startDashboard } from "../support/dashboard-program.ts";
import { type DashboardStream, readDashboard } from "../support/dashboard-stream.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { childrenOf, isAlive } from "../support/processes.ts";
import { describeWithKube } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };

describeWithKube("ctrlmesh dashboard", () => {
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

  it("shows a namespace move, ends at Ctrl-C with 0, and leaves no kubectl and no socket", async () => {
    const { url, child, folder, ended } = await start("-A");
    const seen = await read(url);
    const ownerOf = (place: string) => {
      const slices = [...seen.parts.values()].filter((part) => part.part === "slice");
      return bandsOf(slices, []).find(({ cells }) => cells.some((cell) => cell.place === place && cell.state === "owned"))?.name;
    };
    await eventually(() => ownerOf("team-b") === "default" && ownerOf("canary-eu") === "v2", 20_000);
    await mesh.client.patch(
      NAMESPACES,
      { name: "team-b" },
      { type: "merge", body: { metadata: { labels: { "ns-type": "canary-1" } } } },
    );
    await eventually(() => ownerOf("team-b") === "v2", 20_000);

    const [inside] = readdirSync(folder);
    const proxyFolder = join(folder, inside ?? "");
    expect(statSync(proxyFolder).mode & 0o777).toBe(0o700);
    const kubectls = childrenOf(child.pid ?? 0);
    expect(kubectls).toHaveLength(1);
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
    await eventually(() => kubectls.every(({ pid }) => !isAlive(pid)));
    await expect(fetch(url)).rejects.toThrow();
  });

  it("its kubectl takes reads of the mesh only, and no token comes to the page", async () => {
    const { url, folder } = await start("-A");
    const socketPath = join(folder, readdirSync(folder)[0] ?? "", "kubectl");
    const ask = (method: string, path: string) =>
      new Promise<number>((resolve, reject) => {
        request({ socketPath, method, path, headers: { host: "localhost" } }, (reply) => resolve(reply.resume().statusCode ?? 0))
          .on("error", reject)
          .end();
      });
    const apps = "/apis/ctrlmesh.kruise.io/v1alpha1/virtualapps";
    expect(await ask("GET", apps)).toBe(200);
    expect(await ask("GET", "/api/v1/secrets")).toBe(403);
    expect(await ask("GET", "/apis/apps/v1/deployments")).toBe(403);
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) expect(await ask(method, apps)).toBe(403);
    const seen = await read(url);
    await eventually(() => seen.parts.size > 6 && seen.ticks.length > 0);
    expect(seen.text).not.toContain(kube.token);
  });

  it("says which rights a user lacks", async () => {
    const { url } = await start("-A", "--as=nobody");
    const seen = await read(url);
    const kinds = () => [...seen.parts.values()].flatMap((part) => (part.part === "kind" ? [part.state] : []));
    await eventually(() => kinds().length === 6 && kinds().every((state) => state === "forbidden"), 20_000);
  });

  it("without kubectl on the PATH, it asks the API server itself", async () => {
    const { url } = await startDashboard({ KUBECONFIG: kube.kubeconfig, PATH: "/nonexistent" }, ["-A"], closing);
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values(), APP.name) !== undefined, 20_000);
  });
});

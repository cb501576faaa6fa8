// `ctrlmesh dashboard` on a real API server, by way of the user's kubectl.
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { bandsOf } from "../../src/cli/dashboard/model/bands.ts";
import type { Part } from "../../src/cli/dashboard/model/parts.ts";
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import { type DashboardStream, readDashboard } from "../support/dashboard-stream.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const APP = { namespace: "foo-system", name: "foo-operator" };

interface Dashboard {
  readonly url: string;
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** Its temporary folder. */
  readonly folder: string;
  readonly ended: Promise<unknown>;
}

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

  async function startWith(env: Readonly<Record<string, string>>, ...args: string[]): Promise<Dashboard> {
    const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-dashboard-test-"));
    const child = spawn(process.execPath, [MAIN, "dashboard", ...args], {
      env: { ...process.env, KUBECONFIG: kube.kubeconfig, TMPDIR: folder, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const ended = once(child, "close").then(([code]) => code);
    // Not SIGKILL, which leaves its kubectl.
    closing.push(async () => {
      child.kill("SIGTERM");
      await ended.catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    });
    await Promise.race([eventually(() => stdout.endsWith("\n"), 30_000), ended.then(() => Promise.reject(new Error(stderr)))]);
    return { url: stdout.trim(), child, folder, ended };
  }

  const start = (...args: string[]) => startWith({}, ...args);

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
    await eventually(() => kubectls.every((pid) => !isAlive(pid)));
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

  it("starts kubectl again if it ends, and the page goes on", async () => {
    const { url, child } = await start("-A");
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values()) !== undefined && seen.ticks.length > 0, 20_000);
    const [kubectl = 0] = childrenOf(child.pid ?? 0);
    process.kill(kubectl, "SIGKILL");
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

  it("without kubectl on the PATH, it asks the API server itself", async () => {
    const { url } = await startWith({ PATH: "/nonexistent" }, "-A");
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values()) !== undefined, 20_000);
  });

  it("keeps what was known while the API server is away, and goes on when it is back", async () => {
    const { url } = await start("-A");
    const seen = await read(url);
    await eventually(() => appIn(seen.parts.values()) !== undefined && seen.ticks.length > 0, 20_000);
    await kube.crash();
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs !== undefined, 15_000);
    expect(appIn(seen.parts.values())).toBeDefined();
    await kube.restart();
    await eventually(() => seen.ticks.at(-1)?.awaySinceMs === undefined, 15_000);
    await mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body: { spec: { route: { paused: true } } } });
    await eventually(() => appIn(seen.parts.values())?.isPaused === true, 15_000);
  });
});

function appIn(parts: Iterable<Part>) {
  return [...parts].find((part) => part.part === "app" && part.name === APP.name) as Extract<Part, { part: "app" }> | undefined;
}

function childrenOf(pid: number): number[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return rows.flatMap((row) => {
    const [child, parent] = row.trim().split(/\s+/).map(Number);
    return parent === pid && child !== undefined ? [child] : [];
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

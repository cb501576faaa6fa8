// The status of a VirtualApp is true, on the real control plane and as kubectl reads it. After an edit and `kubectl wait`, writes through
// both proxies show the owner. Further tests edit without a manager and check the size of the status.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { conditionOf } from "../../src/manager/status/facts.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { shareOf } from "../support/fuzz.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube, itNightly } from "../support/requirements.ts";

const REF = { namespace: "foo-system", name: "foo-operator" };
const NAMES = ["-n", REF.namespace];
const MANY = 2_000;
/** The app, with more namespaces in its canary. */
const appWith = (regex: string) => demoVirtualApp().replace("^canary", regex);

describeWithKube("the status of a VirtualApp", () => {
  let kube: Kube;
  let mesh: Mesh;
  let plain: MeshPod;
  let canary: MeshPod;
  const seen: VirtualApp[] = [];
  const watching = new AbortController();

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "extra", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    void watchApp();
    plain = await mesh.addPod({ name: "foo-0", labels: { version: "v1" } });
    canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  });
  afterAll(async () => {
    watching.abort();
    await mesh?.stop();
    await kube?.stop();
  });

  async function watchApp(): Promise<void> {
    try {
      for await (const event of mesh.client.watch(VIRTUAL_APPS, { namespace: REF.namespace, signal: watching.signal })) {
        if (event.type === "ADDED" || event.type === "MODIFIED") seen.push(event.object);
      }
    } catch (error) {
      if (!watching.signal.aborted) throw error;
    }
  }
  const get = () => mesh.client.get(VIRTUAL_APPS, REF);
  const wait = (condition: string, seconds = 30) =>
    tryKubectl(kube.kubeconfig, ["wait", `vapp/${REF.name}`, ...NAMES, `--for=condition=${condition}`, `--timeout=${seconds}s`]);
  /** The pods that may write in a namespace, found by a dry-run write through both proxies. */
  const writers = async (namespace: string) => {
    const manifest = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "probe", namespace } });
    const args = ["create", "-f", "-", "--dry-run=server"];
    const results = await Promise.all(
      [plain, canary].map(async ({ name, adminKubeconfig }) => ({
        name,
        ...(await tryKubectl(adminKubeconfig, args, manifest)),
      })),
    );
    return results.flatMap(({ name, code }) => (code === 0 ? [name] : []));
  };

  it("satisfies kubectl wait for Ready and Converged once each subset can write to its own namespaces", async () => {
    for (const condition of ["Ready", "Converged"]) expect(await wait(condition)).toMatchObject({ code: 0 });
    expect(await writers("extra")).toEqual(["foo-0"]);
    expect(await writers("canary-eu")).toEqual(["foo-canary-0"]);
  });

  it("is Converged after each edit only when ownership matches the edit", async () => {
    for (const [regex, writer] of Array.from({ length: shareOf(4, 1 / 2) }, () => [
      ["^(canary|extra)", "foo-canary-0"],
      ["^canary", "foo-0"],
    ]).flat() as [string, string][]) {
      await mesh.apply(appWith(regex));
      expect(await wait("Converged")).toMatchObject({ code: 0 });
      expect(await writers("extra")).toEqual([writer]);
    }
    const { status } = await get();
    expect(status?.handover).toBeUndefined();
    expect(status?.lastHandover).toMatchObject({ from: "v2", to: "default", namespaces: 1, result: "Moved" });
    expect(status?.lastHandover?.noWriterSeconds).toBeGreaterThan(0);
    expect(status?.lastHandover?.noWriterSeconds).toBeLessThan(15);
    await eventually(async () => {
      const { items } = await mesh.client.list(EVENTS, { namespace: REF.namespace });
      const moved = items.filter(({ reason }) => reason === "MovedNamespaces").map(({ message = "" }) => message);
      expect(moved.at(-1)).toMatch(
        /^moved 1 namespace from .* to .*, route \d+; nobody could write to them for [\d.]+ m?s at most$/,
      );
    }, 10_000);
  });

  it("describes the last of several edits that were made without a manager", async () => {
    await mesh.killManager();
    await mesh.apply(appWith("^(canary|team-a)"));
    await mesh.apply(appWith("^(canary|extra)"));
    expect((await wait("Converged", 1)).code).not.toBe(0);
    await mesh.startManager();
    expect(await wait("Converged")).toMatchObject({ code: 0 });
    expect(await writers("extra")).toEqual(["foo-canary-0"]);
    expect(await writers("team-a")).toEqual(["foo-0"]);
    const { metadata, status } = await get();
    expect(status?.observedGeneration).toBe(metadata.generation);
    expect(status?.lastHandover).toMatchObject({ from: "default", to: "v2", namespaces: 1, result: "Moved" });
  });

  itNightly("stays small while 2,000 namespaces wait for one pod, which kubectl's columns show with the reason", async () => {
    const names = Array.from({ length: MANY }, (_, index) => `tenant-${index}`);
    while (names.length > 0) await Promise.all(names.splice(0, 50).map((name) => mesh.createNamespace(name)));
    await eventually(async () => expect((await get()).status?.namespaces?.total).toBeGreaterThan(MANY), 30_000);
    expect(await wait("Converged")).toMatchObject({ code: 0 });
    const before = (await get()).status?.lastHandover;

    plain.proxy.kill("SIGSTOP");
    const stoppedAt = performance.now();
    await mesh.apply(appWith("^(canary|extra|tenant)"));
    await eventually(async () => expect((await get()).status?.namespaces?.moving).toBe(MANY), 30_000);
    const { status } = await get();
    expect(JSON.stringify(status).length).toBeLessThan(5_000);
    expect(status?.handover).toMatchObject({ from: "default", to: "v2", phase: "Draining", waitingOn: [{ pod: "foo-0" }] });
    const columns = (await kubectl(kube.kubeconfig, ["get", "vapp", REF.name, ...NAMES]))
      .split("\n")
      .map((line) => line.split(/\s+/));
    expect(columns[0]?.slice(-3)).toEqual(["WAITING-FOR", "WHY", "AGE"]);
    expect(columns[1]?.slice(6, -1)).toEqual([String(MANY), "foo-0", "NotAcknowledged"]);
    expect((await wait("Converged", 1)).code).not.toBe(0);
    expect(await wait("Ready", 5)).toMatchObject({ code: 0 });

    const seconds = (performance.now() - stoppedAt) / 1000;
    plain.proxy.kill("SIGCONT");
    expect(await wait("Converged")).toMatchObject({ code: 0 });
    expect(await writers("tenant-7")).toEqual(["foo-canary-0"]);
    const after = (await get()).status?.lastHandover;
    expect(after?.finishedAt).not.toBe(before?.finishedAt);
    expect(after).toMatchObject({ from: "default", to: "v2", namespaces: MANY });
    expect(after?.noWriterSeconds).toBeGreaterThan(seconds - 5);
  });

  it("was never Converged during a move, and always had all its conditions", async () => {
    const written = seen.filter(({ status }) => status?.conditions !== undefined);
    expect(written.length).toBeGreaterThan(10);
    for (const { status } of written) {
      expect(status?.conditions?.map(({ type }) => type)).toEqual([
        "Ready",
        "Accepted",
        "Converged",
        "LockPermitted",
        "TrafficIntercepted",
      ]);
      for (const row of status?.conditions ?? []) expect(row.observedGeneration).toBe(status?.observedGeneration);
      if (status?.handover !== undefined) expect(conditionOf(status, "Converged")?.status).not.toBe("True");
    }
    const generations = Map.groupBy(written, ({ metadata }) => metadata.generation);
    const most = Math.max(...[...generations].filter(([generation]) => generation !== 1).map(([, writes]) => writes.length));
    const times = new Map(
      written.flatMap(({ status }) => (status?.lastHandover ? [[status.lastHandover.finishedAt, status.lastHandover]] : [])),
    );
    const seconds = [...times.values()].map(({ noWriterSeconds }) => noWriterSeconds);
    process.stderr.write(`at most ${most} status writes for one edit; no subset could write for ${seconds.join(", ")} s\n`);
  });
});

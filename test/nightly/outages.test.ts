// Outages on the real control plane: the manager, a proxy or the API server is killed and starts again. Traffic goes on, ownership does
// not change, and every part recovers without help.
import { afterAll, beforeAll, expect, it } from "vitest";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("operators in the mesh", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pods: Record<"default" | "canary", MeshPod>;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, restarts: true }); // an operator that loses its lease exits, as with client-go
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    pods = {
      default: await mesh.addPod({ name: "foo-0", labels: { version: "v1" }, operator: true }),
      canary: await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" }, operator: true }),
    };
    await expectReconciled("before");
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  /** Each subset reconciles a new Foo, and no pod ever wrote outside of its subset's namespaces. */
  async function expectReconciled(name: string, withinMs = 20_000): Promise<void> {
    await mesh.createFoo("team-a", name, name);
    await mesh.createFoo("canary-eu", name, name);
    const by = async (namespace: string) => (await mesh.foo(namespace, name)).status?.reconciledBy;
    await eventually(async () => expect(await by("team-a")).toBe("foo-0"), withinMs);
    await eventually(async () => expect(await by("canary-eu")).toBe("foo-canary-0"), withinMs);
    const unexpectedWrites = mesh
      .podWrites()
      .filter(({ resource, code }) => resource !== "leases" && resource !== "events" && code < 400)
      .filter(({ pod, namespace }) => namespace.startsWith("canary") !== (pod === "foo-canary-0"));
    expect(unexpectedWrites).toEqual([]);
  }
  const metric = async (pod: MeshPod, name: string) => {
    const text = await (await fetch(`${pod.healthUrl}/metrics`)).text();
    return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  };
  const connected = (pod: MeshPod, value: number) => async () =>
    expect(await metric(pod, "ctrlmesh_proxy_manager_connected")).toBe(value);

  it("work on while the manager is away, and its return does not change their routes", async () => {
    const version = await metric(pods.canary, "ctrlmesh_proxy_route_version");
    await mesh.killManager();
    await eventually(connected(pods.canary, 0));
    await expectReconciled("without-manager");
    await mesh.startManager();
    await eventually(connected(pods.canary, 1), 30_000);
    await eventually(connected(pods.default, 1), 30_000);
    await expectReconciled("manager-back");
    expect(await metric(pods.canary, "ctrlmesh_proxy_route_version")).toBe(version);
    await mesh.createNamespace("canary-after");
    await mesh.createFoo("canary-after", "x", "x");
    await eventually(async () => expect((await mesh.foo("canary-after", "x")).status?.reconciledBy).toBe("foo-canary-0"), 20_000);
  });

  it("work on after a restart of their proxy without a manager, with the proxy's last snapshot", async () => {
    await mesh.killManager();
    await pods.canary.restartProxy();
    expect((await fetch(`${pods.canary.healthUrl}/readyz`)).status).toBe(200);
    await expectReconciled("proxy-back", 40_000);
    await mesh.startManager();
    await eventually(connected(pods.canary, 1), 30_000);
  });

  it("recover from a restart of the API server", async () => {
    await kube.crash();
    await kube.restart();
    await expectReconciled("api-server-back", 60_000);
    await mesh.createNamespace("canary-afterwards");
    await mesh.createFoo("canary-afterwards", "x", "x");
    await eventually(
      async () => expect((await mesh.foo("canary-afterwards", "x")).status?.reconciledBy).toBe("foo-canary-0"),
      60_000,
    );
    await eventually(async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, { namespace: "foo-system", name: "foo-operator" });
      expect(status?.conditions?.find(({ type }) => type === "Ready")?.status, JSON.stringify(status)).toBe("True");
    }, 30_000);
  });
});

// kubectl through a proxy, as a person uses it in a pod. kubectl shows only the subset's own objects, and helpful refusals.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };
const DEPLOYMENTS: Resource = { group: "apps", version: "v1", resource: "deployments", kind: "Deployment", namespaced: true };

describeWithKube("kubectl through a proxy", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  const run = (args: string, input?: string) => tryKubectl(pod.adminKubeconfig, args.split(" "), input);
  const ok = async (args: string, input?: string) => {
    const { code, stdout, stderr } = await run(args, input);
    expect(code, `kubectl ${args}: ${stderr}`).toBe(0);
    return stdout;
  };
  const fooYaml = (namespace: string, name: string) =>
    `{"apiVersion":"demo.ctrlmesh.io/v1","kind":"Foo","metadata":{"namespace":"${namespace}","name":"${name}"},"spec":{"message":"hello"}}`;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu", "canary-us"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    for (const namespace of ["team-a", "canary-eu", "canary-us"]) await mesh.createFoo(namespace, `foo-of-${namespace}`, "x");
    pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  it("get -A shows exactly the subset's own objects as table, yaml, json and name", async () => {
    const table = await ok("get foos -A");
    expect(
      table
        .split("\n")
        .filter((line) => line.includes("foo-of-"))
        .map((line) => line.split(/\s+/)[0]),
    ).toEqual(["canary-eu", "canary-us"]);
    for (const text of [await ok("get foos -A -o yaml"), await ok("get foos -A -o json")]) {
      const { items } = parse(text) as { items: { metadata: { namespace: string } }[] };
      expect(items.map(({ metadata }) => metadata.namespace)).toEqual(["canary-eu", "canary-us"]);
    }
    expect(await ok("get foos -A -o name")).toBe(
      "foo.demo.ctrlmesh.io/foo-of-canary-eu\nfoo.demo.ctrlmesh.io/foo-of-canary-us\n",
    );
    expect(await ok("get foos -A -o wide")).not.toContain("team-a");
  });

  it("get namespaces shows the subset's own namespaces", async () => {
    expect(await ok("get namespaces -o name")).toBe("namespace/canary-eu\nnamespace/canary-us\n");
  });

  it("an object of another subset is refused with a 403 that names the owner", async () => {
    for (const args of [
      "get foo foo-of-team-a -n team-a",
      "delete foo foo-of-team-a -n team-a",
      "describe foo foo-of-team-a -n team-a",
    ]) {
      const { code, stderr } = await run(args);
      expect(code).toBe(1);
      expect(stderr).toContain("Forbidden");
      expect(stderr).toContain('namespace "team-a" belongs to the default subset');
    }
    const applied = await run("apply -f -", fooYaml("team-a", "new"));
    expect(applied.code).toBe(1);
    expect(applied.stderr).toContain('namespace "team-a" belongs to the default subset');
    expect((await mesh.foo("team-a", "foo-of-team-a")).metadata.name).toBe("foo-of-team-a");
  });

  it("a write to another subset's namespace passes with a warning that names the owner, if spec.route.guard is Warn", async () => {
    const setGuard = async (guard: "Warn" | "Enforce") => {
      const body = { spec: { route: { guard } } };
      const { metadata } = await mesh.client.patch(VIRTUAL_APPS, APP, { type: "merge", body });
      return eventually(async () => {
        const { conditions = [] } = (await mesh.client.get(VIRTUAL_APPS, APP)).status ?? {};
        const [accepted, converged] = ["Accepted", "Converged"].map((type) => conditions.find((each) => each.type === type));
        expect(converged).toMatchObject({ status: "True", observedGeneration: metadata.generation });
        return accepted?.message;
      });
    };
    expect(await setGuard("Warn")).toContain("the guard is Warn: writes to objects of other subsets pass");
    const created = await run("create -f -", fooYaml("team-a", "warned"));
    expect([created.code, created.stdout]).toEqual([0, "foo.demo.ctrlmesh.io/warned created\n"]);
    expect(created.stderr).toBe(
      'Warning: ctrlmesh: create foos.demo.ctrlmesh.io: namespace "team-a" belongs to the default subset; it passes, since the guard is Warn\n',
    );
    expect((await run("create -f -", fooYaml("canary-eu", "unwarned"))).stderr).toBe("");
    expect((await run("get foo warned -n team-a")).stderr).toContain("Warning: ctrlmesh: get foos.demo.ctrlmesh.io");
    expect((await run("delete foo warned -n team-a")).stderr).toContain(
      'Warning: ctrlmesh: delete foos.demo.ctrlmesh.io "warned"',
    );
    await setGuard("Enforce");
    expect((await run("create -f -", fooYaml("team-a", "refused"))).stderr).toContain("Forbidden");
    await mesh.client.delete(FOOS, { namespace: "canary-eu", name: "unwarned" });
  });

  it("a list in another subset's namespace is empty without an error", async () => {
    const { code, stderr } = await run("get foos -n team-a");
    expect(code).toBe(0);
    expect(stderr).toContain("No resources found");
  });

  it("requests in a namespace that does not exist soon get NotFound", async () => {
    // Without the proxy's check for the namespace, each request would be held for two seconds and then get 503.
    const startedMs = performance.now();
    expect(await ok("delete cm x -n gone --ignore-not-found")).toBe("");
    expect((await run("get cm x -n gone")).stderr).toContain("Error from server (NotFound)");
    expect((await run("get namespace gone")).stderr).toContain('Error from server (NotFound): namespaces "gone" not found');
    const created = await run("create -f - --validate=false", fooYaml("gone", "x"));
    expect(created.stderr).toContain('namespaces "gone" not found');
    const applied = await run("apply --server-side -f - --validate=false", fooYaml("gone", "x"));
    expect(applied.stderr).toContain('namespaces "gone" not found');
    expect((await run("get foos -n gone")).stderr).toContain("No resources found in gone namespace");
    expect(performance.now() - startedMs).toBeLessThan(12_000);
  });

  it("apply (client and server side), describe, patch and delete work in the subset's own namespaces", async () => {
    expect(await ok("apply -f -", fooYaml("canary-eu", "applied"))).toContain("created");
    expect(await ok("apply -f -", fooYaml("canary-eu", "applied"))).toContain("unchanged");
    expect(await ok("apply --server-side -f -", fooYaml("canary-eu", "ssa"))).toContain("serverside-applied");
    expect(await ok("apply --dry-run=server -f -", fooYaml("canary-eu", "dry"))).toContain("server dry run");
    expect(await ok("describe foo applied -n canary-eu")).toContain("Message:  hello");
    expect(await ok(`patch foo applied -n canary-eu --type merge -p {"spec":{"message":"bye"}}`)).toContain("patched");
    expect(await ok("delete foo applied ssa -n canary-eu")).toContain("deleted");
    await expect(mesh.foo("canary-eu", "applied")).rejects.toThrow(/not found/);
  });

  it("get -w shows the subset's own events, also of a namespace that is created meanwhile", async () => {
    const child = spawn("kubectl", ["--kubeconfig", pod.adminKubeconfig, "get", "foos", "-A", "-w"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let seen = "";
    child.stdout.on("data", (chunk: Buffer) => {
      seen += chunk.toString();
    });
    await eventually(() => expect(seen).toContain("foo-of-canary-us"));
    await mesh.createFoo("team-a", "watched-other", "x");
    await mesh.createNamespace("canary-new");
    await mesh.createFoo("canary-new", "watched-own", "x");
    await eventually(() => expect(seen).toContain("watched-own"));
    expect(seen).not.toContain("watched-other");
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    await gone;
  });

  it("get in pages of one object shows the same as in one page, although other subsets own many of these objects", async () => {
    for (const resource of ["foos", "configmaps"]) {
      const whole = await ok(`get ${resource} -A -o name --chunk-size=0`);
      expect(await ok(`get ${resource} -A -o name --chunk-size=1`)).toBe(whole);
      expect(await ok(`get ${resource} -A --no-headers --chunk-size=1`)).toBe(
        await ok(`get ${resource} -A --no-headers --chunk-size=0`),
      );
    }
    expect(await ok("get foos -A -o name --chunk-size=1")).toContain("foo-of-canary-us");
  });

  it("wait works for a field and for a deletion in the subset's own namespaces", async () => {
    await mesh.createFoo("canary-eu", "awaited", "x");
    const reconciled = run("wait foo/awaited -n canary-eu --for=jsonpath={.status.reconciledBy}=other-pod --timeout=20s");
    const everywhere = run("wait foo -A --all --for=jsonpath={.spec.message}=x --timeout=20s");
    const body = { status: { reconciledBy: "other-pod" } };
    await mesh.client.patch(
      FOOS,
      { namespace: "canary-eu", name: "awaited" },
      { type: "merge", body },
      { subresource: "status" },
    );
    expect((await reconciled).stdout).toContain("condition met");
    expect((await everywhere).stdout).not.toContain("foo-of-team-a");
    expect((await everywhere).stdout).toContain("foo-of-canary-us");
    const deleted = run("wait foo/awaited -n canary-eu --for=delete --timeout=20s");
    await mesh.client.delete(FOOS, { namespace: "canary-eu", name: "awaited" });
    expect((await deleted).code).toBe(0);
    const refusedWait = await run("wait foo/foo-of-team-a -n team-a --for=jsonpath={.spec.message}=x --timeout=5s");
    expect([refusedWait.code, refusedWait.stdout]).toEqual([1, ""]);
  });

  it("rollout restart, status and history work on a Deployment in the subset's own namespaces", async () => {
    await ok("create deployment shop -n canary-eu --image=example.invalid/shop");
    await ok("rollout restart deployment/shop -n canary-eu");
    const status = run("rollout status deployment/shop -n canary-eu --timeout=20s");
    // No Deployment controller runs here, so the test writes the status.
    const shop = await mesh.client.get(DEPLOYMENTS, { namespace: "canary-eu", name: "shop" });
    const counts = {
      observedGeneration: shop.metadata.generation,
      replicas: 1,
      updatedReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
    };
    const ref = { namespace: "canary-eu", name: "shop" };
    await mesh.client.patch(DEPLOYMENTS, ref, { type: "merge", body: { status: counts } }, { subresource: "status" });
    expect((await status).stdout).toContain("successfully rolled out");
    expect((await run("rollout history deployment/shop -n canary-eu")).code).toBe(0);
    const refusedCreate = await run("create deployment shop -n team-a --image=example.invalid/shop");
    expect(refusedCreate.stderr).toContain('namespace "team-a" belongs to the default subset');
  });
});

// Objects that a GitOps tool applies again and again, beside the manager and the program ctrlmesh, which write into them too. The tools are
// kubectl as each of them applies: client-side, and server-side with the field managers of Argo CD and Flux.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { ctrlmesh, PATIENT } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube, itNightly } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };
const ROOT = { namespace: "foo-system", name: "bar-operator" };
const ARGO_CD = ["--server-side", "--force-conflicts", "--field-manager=argocd-controller"];
const FLUX = ["--server-side", "--force-conflicts", "--field-manager=kustomize-controller"];

interface ManagedFields {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: object;
}

describeWithKube("objects in Git", () => {
  let kube: Kube;
  let mesh: Mesh;
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-gitops-"));
  const rendered = join(dir, "rendered.yaml");
  const run = (...args: string[]) => ctrlmesh(kube.kubeconfig, [...args, PATIENT]);
  const apply = (how: readonly string[]) => kubectl(kube.kubeconfig, ["apply", ...how, "-f", rendered]);
  const diff = (how: readonly string[]) => tryKubectl(kube.kubeconfig, ["diff", ...how, "-f", rendered]);
  const route = async () => (await mesh.client.get(VIRTUAL_APPS, APP)).spec.route;

  /** As its controller does before each apply: what kubectl has written, by whatever command, becomes its own. */
  const applyAsFlux = async () => {
    const name = ["virtualapp", APP.name, "-n", APP.namespace];
    const shown = await kubectl(kube.kubeconfig, ["get", ...name, "-o", "json", "--show-managed-fields"]);
    const { metadata, apiVersion } = JSON.parse(shown) as { metadata: { managedFields: ManagedFields[] }; apiVersion: string };
    const isTaken = ({ manager, subresource }: ManagedFields) =>
      /^(kubectl|before-first-apply|kustomize-controller)/.test(manager) && subresource === undefined;
    const taken = metadata.managedFields.filter(isTaken).map(({ fieldsV1 }) => fieldsV1);
    const fieldsV1 = taken.reduce(merged, {});
    const own = { manager: "kustomize-controller", operation: "Apply", apiVersion, fieldsType: "FieldsV1", fieldsV1 };
    const value = [...metadata.managedFields.filter((each) => !isTaken(each)), own];
    const patch = JSON.stringify([{ op: "replace", path: "/metadata/managedFields", value }]);
    await kubectl(kube.kubeconfig, ["patch", ...name, "--type=json", "-p", patch]);
    await apply(FLUX);
  };

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "team-b", "canary-eu", "operator-demo"]) await mesh.createNamespace(name);
    await mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "bar", replicas: 2, version: "v1", app: "bar-operator" }));
    const root = familyRoot(ROOT, { statefulSet: "bar", resources: [["", "configmaps"]] });
    const metadata = { ...ROOT, labels: { "app.kubernetes.io/instance": "mesh" } };
    const policies = ["traffic-policy", "circuit-breaker", "fault-injection"].map((file) =>
      readFileSync(new URL(`../../examples/traffic/${file}.yaml`, import.meta.url), "utf8"),
    );
    writeFileSync(rendered, [demoVirtualApp(), stringify({ ...root, metadata }), ...policies].join("---\n"));
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it("do not differ from Git once the manager has worked, and what it creates is not Git's", async () => {
    expect(await run("lint", "-f", rendered)).toMatchObject({ code: 0, stdout: "6 objects, no problems\n" });
    await apply(ARGO_CD);
    await eventually(async () => {
      const { items } = await mesh.client.list(SHARDING_CONFIGS, { namespace: ROOT.namespace });
      const children = items.filter(({ metadata }) => metadata.name !== ROOT.name);
      expect(children.map(({ metadata }) => metadata.ownerReferences?.[0]?.name)).toEqual([ROOT.name, ROOT.name]);
      // Argo CD takes an object for its own by the label of the root.
      for (const { metadata } of children)
        expect(Object.keys(metadata.labels ?? {})).toEqual(["ctrlmesh.kusionstack.io/auto-sharding-root"]);
    });
    await kubectl(kube.kubeconfig, ["wait", "--for=condition=Accepted", "-f", rendered, "--timeout=30s"]);
    for (const how of [[], ARGO_CD]) expect(await diff(how)).toMatchObject({ code: 0, stdout: "" });
  });

  // Flux also takes over what kubectl has written, so it shows most.
  for (const [tool, test] of [
    ["kubectl", itNightly],
    ["Argo CD", itNightly],
    ["Flux", it],
  ] as const) {
    test(`keep a freeze and a pause while ${tool} applies them again, and then are as in Git`, async () => {
      const how = { kubectl: [], "Argo CD": ARGO_CD, Flux: FLUX }[tool] ?? [];
      const again = () => (tool === "Flux" ? applyAsFlux() : apply(how));
      await again();
      const before = await route();
      const flags = ["-n", APP.namespace];
      expect((await run("freeze", "team-a", "--app", APP.name, ...flags, "--reason", "restore")).code).toBe(0);
      expect((await run("pause", APP.name, ...flags)).code).toBe(0);
      await again();
      await again();
      expect(await route()).toMatchObject({ frozen: { "team-a": "restore" }, paused: true });
      expect((await run("resume", APP.name, ...flags)).code).toBe(0);
      expect((await run("thaw", "team-a", "--app", APP.name, ...flags)).code).toBe(0);
      expect(await route()).toEqual({ ...before, frozen: {} });
      expect(await diff(how)).toMatchObject({ code: 0, stdout: "" });
    });
  }

  itNightly("end a pause if Git names the field", async () => {
    const { spec, ...app } = parse(demoVirtualApp());
    const named = join(dir, "paused.yaml");
    writeFileSync(named, stringify({ ...app, spec: { ...spec, route: { ...spec.route, paused: false } } }));
    for (const how of [[], ARGO_CD]) {
      await kubectl(kube.kubeconfig, ["apply", ...how, "-f", named]);
      expect((await run("pause", APP.name, "-n", APP.namespace)).code).toBe(0);
      expect(await route()).toMatchObject({ paused: true });
      await kubectl(kube.kubeconfig, ["apply", ...how, "-f", named]);
      expect(await route()).toMatchObject({ paused: false });
    }
  });

  it("are planned as they will be applied: a field that leaves Git is removed", async () => {
    const { spec, ...app } = parse(demoVirtualApp());
    const edit = join(dir, "edit.yaml");
    writeFileSync(edit, stringify({ ...app, spec: { selector: spec.selector, configuration: spec.configuration } }));
    for (const how of [ARGO_CD, []]) {
      await kubectl(kube.kubeconfig, ["delete", "virtualapp", APP.name, "-n", APP.namespace, "--ignore-not-found"]);
      await apply(how);
      const moves = "VirtualApp foo-system/foo-operator: 1 of 10 namespaces moves\n  v2 -> default  1  canary-eu\n";
      expect(await run("plan", "-f", edit)).toMatchObject({ code: 2, stdout: expect.stringContaining(moves) });
      expect(await run("plan", "-f", rendered)).toMatchObject({ code: 0 });
    }
  });
});

/** Fields of a manager, with those of another one. */
function merged(into: object, from: object): object {
  const before = into as Record<string, object>;
  const both = Object.entries(from).map(([key, value]) => [key, merged(before[key] ?? {}, value)]);
  return { ...into, ...Object.fromEntries(both) };
}

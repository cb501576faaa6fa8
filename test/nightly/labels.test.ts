// `labelObjects` on the real control plane, by a manager that has only the chart's rights: the policies label what is created and changed, the
// patcher what was there before, and the documented command removes the labels.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../src/kube/client/resources.ts";
import { nameHash } from "../../src/kube/place.ts";
import { ctrlmesh } from "../support/ctrlmesh.ts";
import { eventually } from "../support/eventually.ts";
import { CHART_ARGS, helm, MESH_NAMESPACE, RELEASE } from "../support/helm.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { writeKubeconfig } from "../support/mesh/cluster.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { refusals } from "../support/rbac.ts";
import { describeWithKube } from "../support/requirements.ts";
import { refusedByPolicy, withStolenToken } from "../support/stolen-token.ts";

const NAMESPACE = "foo-system";
const CONFIG = { namespace: NAMESPACE, name: "shop-east" };
const KEY = "ctrlmesh.kusionstack.io";
const KEYS = [`${KEY}/control`, `${KEY}/namespace`, `${KEY}/shard-hash`];
const OLD = 120;

const config = (spec: object) => ({
  apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
  kind: "ShardingConfig",
  metadata: CONFIG,
  spec: {
    selector: { matchLabels: { shard: "east" } },
    controller: { leaderElectionName: "shop" },
    limits: [
      {
        relateResources: [
          { apiGroups: [""], resources: ["configmaps", "pods"] },
          { apiGroups: ["demo.ctrlmesh.io"], resources: ["foos"] },
        ],
        selector: { matchLabels: { [`${KEY}/namespace`]: "team-a" } },
      },
    ],
    ...spec,
  },
});
const rightLabels = (namespace: string) => ({
  [`${KEY}/namespace`]: namespace,
  [`${KEY}/shard-hash`]: String(nameHash(namespace)),
});

describeWithKube("labels on request", () => {
  let dir: string;
  let kube: Kube;
  let mesh: Mesh;
  let managerKubeconfig: string;

  const run = (...args: string[]) => kubectl(kube.kubeconfig, args);
  const labels = async () => (await mesh.client.get(SHARDING_CONFIGS, CONFIG)).status?.labels;
  const own = (all: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(Object.entries(all).filter(([key]) => key.startsWith(KEY)));
  const configMap = async (namespace: string, name: string) =>
    own((await mesh.client.get(CONFIG_MAPS, { namespace, name })).metadata.labels);
  const namespace = async (name: string) => own((await mesh.client.get(NAMESPACES, { name })).metadata.labels);
  const policies = () => run("get", "mutatingadmissionpolicies,mutatingadmissionpolicybindings", "-o", "name");
  const untilComplete = (ms = 60_000) =>
    eventually(async () => {
      const now = await labels();
      expect(now?.message).toBeUndefined();
      expect(now).toMatchObject({ complete: ["configmaps", "pods", "foos.demo.ctrlmesh.io"], labelled: now?.total });
    }, ms);

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "ctrlmesh-labels-"));
    kube = await startKube({ controllerManager: true });
    await helm(["install", RELEASE, ...CHART_ARGS, "--create-namespace"], kube.kubeconfig);
    const token = (await run("create", "token", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "--duration=1h")).trim();
    managerKubeconfig = writeKubeconfig(join(dir, "kubeconfig"), kube.server, kube.caFile, token);
    mesh = await startMesh({ kube, managerKubeconfig });
    for (const name of ["team-a", "team-b", "out"]) await run("create", "namespace", name);
    for (let number = 0; number < OLD; number++) {
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "team-a", name: `old-${number}` } });
    }
    await mesh.createFoo("team-b", "old", "x");
  }, 120_000);
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  it("name the missing right and the value of the chart that gives it", async () => {
    await mesh.apply(JSON.stringify(config({ labelObjects: true })));
    await eventually(async () => {
      const now = await labels();
      expect(now).toMatchObject({ waitingFor: "Forbidden", complete: [] });
      expect(now?.message).toContain("may not patch namespaces: add the resources to the chart's value rbac.labelObjects");
    }, 30_000);
    const stranger = { ...config({ labelObjects: true }), metadata: { namespace: "team-b", name: "stranger" } };
    await mesh.apply(JSON.stringify(stranger));
    await eventually(async () => {
      const { status } = await mesh.client.get(SHARDING_CONFIGS, stranger.metadata);
      expect(status?.labels).toMatchObject({ waitingFor: "NotAllowed", total: 0, complete: [] });
    }, 30_000);
    await run("delete", "shard", "stranger", "-n", "team-b", "--timeout=60s");
    const refused = refusals(kube.audit()).filter((line) => /patch (namespaces|configmaps)|list configmaps \//.test(line));
    expect(refused).toEqual([]);
    expect(await policies()).toBe("");
  });

  it("are complete in the end, also if the manager is killed on the way", { timeout: 180_000 }, async () => {
    const resources = [
      ["", "configmaps"],
      ["", "pods"],
      ["demo.ctrlmesh.io", "foos"],
    ].flatMap(([group, resource], at) => [
      "--set",
      `rbac.labelObjects[${at}].group=${group},rbac.labelObjects[${at}].resource=${resource},rbac.labelObjects[${at}].families[0]=*`,
    ]);
    await helm(["upgrade", RELEASE, ...CHART_ARGS, ...resources], kube.kubeconfig);
    await eventually(async () => {
      expect((await labels())?.message).not.toContain("may not");
      const { items } = await mesh.client.list(CONFIG_MAPS, { namespace: "team-a", labelSelector: `${KEY}/namespace` });
      expect(items.length).toBeGreaterThan(20);
    }, 60_000);
    await mesh.killManager();
    const { items } = await mesh.client.list(CONFIG_MAPS, { namespace: "team-a", labelSelector: `!${KEY}/namespace` });
    expect(items.length).toBeGreaterThan(20);
    await mesh.startManager();
    await untilComplete(120_000);
    expect(await configMap("team-a", "old-0")).toEqual(rightLabels("team-a"));
    expect(await namespace("team-b")).toEqual({ ...rightLabels("team-b"), [`${KEY}/control`]: "true" });
  });

  it("are set at creation, over planted ones, and cannot be changed or removed", async () => {
    const planted = { [`${KEY}/namespace`]: "team-b", [`${KEY}/shard-hash`]: "0" };
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "team-a", name: "new", labels: planted } });
    expect(await configMap("team-a", "new")).toEqual(rightLabels("team-a"));
    await run("label", "configmap", "new", "-n", "team-a", "--overwrite", `${KEY}/namespace=team-b`);
    expect(await configMap("team-a", "new")).toEqual(rightLabels("team-a"));
    await run("label", "configmap", "new", "-n", "team-a", `${KEY}/namespace-`, `${KEY}/shard-hash-`);
    expect(await configMap("team-a", "new")).toEqual(rightLabels("team-a"));
    await run("create", "namespace", "test-mysql");
    expect(await namespace("test-mysql")).toEqual({ ...rightLabels("test-mysql"), [`${KEY}/control`]: "true" });
    const { metadata } = await mesh.client.create(NAMESPACES, { metadata: { generateName: "team-", labels: planted } });
    await eventually(async () => expect(await namespace(metadata.name ?? "")).toMatchObject(rightLabels(metadata.name ?? "")));
    await untilComplete();
  });

  it("do not disturb what has no labels: a binding and an eviction of a pod", async () => {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { namespace: "team-a", name: "pod" } };
    const spec = { containers: [{ name: "a", image: "a" }], terminationGracePeriodSeconds: 0 };
    await run("create", "serviceaccount", "default", "-n", "team-a").catch(() => undefined); // the controller manager may be first
    await mesh.apply(JSON.stringify({ ...pod, spec }));
    const body = { metadata: { name: "pod", labels: { [`${KEY}/namespace`]: "team-b" } } };
    const target = { apiVersion: "v1", kind: "Node", name: "node" };
    const path = "/api/v1/namespaces/team-a/pods/pod";
    await mesh.client.request({
      method: "POST",
      path: `${path}/binding`,
      body: { apiVersion: "v1", kind: "Binding", ...body, target },
    });
    const read = (await mesh.client.request({ method: "GET", path })) as { metadata: { labels?: Record<string, string> } };
    expect(own(read.metadata.labels)).toEqual(rightLabels("team-a"));
    const status = { metadata: { labels: { [`${KEY}/namespace`]: "team-b" } } };
    await run("patch", "pod", "pod", "-n", "team-a", "--subresource=status", "--type=merge", "-p", JSON.stringify(status));
    const again = (await mesh.client.request({ method: "GET", path })) as { metadata: { labels?: Record<string, string> } };
    expect(own(again.metadata.labels)).toEqual(rightLabels("team-a"));
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "pod" } };
    await mesh.client.request({ method: "POST", path: `${path}/eviction`, body: eviction });
  });

  it("are all that a stolen token of the manager can change of a namespace or an object", async () => {
    const refusals = await withStolenToken(managerKubeconfig, async (thief) => {
      const merge = (body: object) => ({ type: "merge", body }) as const;
      const old = { namespace: "team-a", name: "old-0" };
      return [
        await refusedByPolicy(
          thief.patch(
            NAMESPACES,
            { name: "team-a" },
            merge({ metadata: { labels: { "pod-security.kubernetes.io/enforce": "privileged" } } }),
          ),
        ),
        await refusedByPolicy(thief.patch(CONFIG_MAPS, old, merge({ data: { evil: "x" } }))),
        await refusedByPolicy(thief.patch(CONFIG_MAPS, old, merge({ metadata: { annotations: { evil: "x" } } }))),
      ];
    });
    expect(refusals).toEqual([
      "ctrlmesh-manager-labels: the manager changes only the mesh's labels",
      "ctrlmesh-manager-labels: the manager changes only labels",
      "ctrlmesh-manager-labels: the manager changes only labels",
    ]);
  });

  it("leave out a namespace that is opted out, and say so", async () => {
    await run("label", "namespace", "out", "--overwrite", `${KEY}/control=false`);
    await eventually(async () => expect(await labels()).toMatchObject({ waitingFor: "OptedOut", complete: [] }));
    await eventually(async () => {
      await mesh.client.delete(CONFIG_MAPS, { namespace: "out", name: "new" }).catch(() => undefined);
      await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "out", name: "new" } });
      expect(await configMap("out", "new")).toEqual({});
    });
    await eventually(async () => expect((await labels())?.message).toContain("namespace out is opted out"));
    await run("label", "namespace", "out", `${KEY}/control-`);
    await eventually(async () => expect(await configMap("out", "new")).toEqual(rightLabels("out")));
    await untilComplete();
  });

  it("are not called complete without the policy, which comes back", async () => {
    await run("delete", "mutatingadmissionpolicy", "ctrlmesh-labels-configmaps");
    await eventually(async () => expect((await labels())?.complete).toEqual(["pods", "foos.demo.ctrlmesh.io"]));
    await untilComplete();
    const note = { spec: { matchConditions: [{ name: "never", expression: "false" }] } };
    const patch = ["--type=merge", "-p", JSON.stringify(note)];
    await run("patch", "mutatingadmissionpolicy", "ctrlmesh-labels-configmaps", ...patch);
    await eventually(async () => {
      const spec = await run(
        "get",
        "mutatingadmissionpolicy",
        "ctrlmesh-labels-configmaps",
        "-o",
        "jsonpath={.spec.matchConditions}",
      );
      expect(spec).toBe("");
    });
    await untilComplete();
  });

  it("stay when they are not wanted any more, until the documented command removes them", async () => {
    await mesh.apply(JSON.stringify(config({ labelObjects: false })));
    await eventually(async () => {
      expect(await policies()).toBe("");
      expect(await labels()).toBeUndefined();
    });
    expect(await configMap("team-a", "old-0")).toEqual(rightLabels("team-a"));
    const labelled = ["configmaps", "pods", "foos.demo.ctrlmesh.io"];
    // The API server applies a deleted policy for up to a second.
    await eventually(async () => {
      for (const resource of labelled) await run("label", resource, "--all", "-A", ...KEYS.slice(1).map((key) => `${key}-`));
      await run("label", "namespaces", "--all", ...KEYS.map((key) => `${key}-`));
      for (const resource of [...labelled, "namespaces"]) {
        for (const key of KEYS) expect(await run("get", resource, "-A", "-l", key, "-o", "name")).toBe("");
      }
    }, 30_000);
  });

  it("are removed by ctrlmesh once nothing would write them again, and not before", async () => {
    const remove = () => ctrlmesh(kube.kubeconfig, ["labels", "remove", CONFIG.name, "-n", NAMESPACE]);
    await mesh.apply(JSON.stringify(config({ labelObjects: true })));
    await untilComplete();
    const early = await remove();
    expect(early).toMatchObject({ code: 1, stdout: expect.stringContaining("asks for the labels, which would come back") });
    expect(await configMap("team-a", "old-0")).toEqual(rightLabels("team-a"));
    await mesh.apply(JSON.stringify(config({ labelObjects: false })));
    await eventually(async () => expect(await policies()).toBe(""));
    // The API server applies a deleted policy for up to a second.
    await eventually(async () => expect(await remove()).toMatchObject({ code: 0 }), 60_000);
    for (const resource of ["configmaps", "pods", "foos.demo.ctrlmesh.io", "namespaces"])
      for (const key of KEYS) expect(await run("get", resource, "-A", "-l", key, "-o", "name")).toBe("");
  });
});

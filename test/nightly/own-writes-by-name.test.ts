// Cluster-scoped objects that a shard has just written to, on the real control plane: the root stops dividing them by name (or the home shard
// changes), in place. The informer behind the shard's proxy must lose them.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { systemClock, systemRandom } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const GROUP = "by-name.test";
const WIDGETS: Resource = { group: GROUP, version: "v1", resource: "widgets", kind: "Widget", namespaced: false };
const NAMES = Array.from({ length: 48 }, (_, index) => `widget-${index}`);
const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
const OBJECTS = [
  {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Cluster",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "widgets" },
    rules: [{ apiGroups: [GROUP], resources: ["widgets"], verbs: ["*"] }],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "widgets" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "widgets" },
    subjects: [{ kind: "ServiceAccount", name: "foo-operator", namespace: NAMESPACE }],
  },
];
const root = (clusterScoped: "ByName" | "Home") => {
  const made = familyRoot(ROOT, { statefulSet: "foo", clusterScoped, resources: [[GROUP, "widgets"]] });
  return JSON.stringify({ ...made, spec: { ...(made as { spec: object }).spec, onLoss: "InPlace" } });
};

describeWithKube("a shard that has just written to a cluster-scoped object", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  let client: KubeClient;
  let stopInformers: () => Promise<void> = async () => undefined;
  let seen: () => string[] = () => [];

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const each of OBJECTS) await mesh.apply(JSON.stringify(each));
    await mesh.apply(root("ByName"));
    runner = startPodRunner({ kube, client: mesh.client, namespace: NAMESPACE, manager: String(mesh.manager.ready.grpc) });
    await mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas: 2, version: "v1", hasEgress: true }));
    await eventually(async () => {
      const { status } = await mesh.client.get(SHARDING_CONFIGS, ROOT);
      expect(status?.root?.childShardingConfigs).toHaveLength(2);
      expect(status?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
      expect(runner.pods.get("foo-1")?.processes.access).toBeDefined();
    }, 60_000);
    for (const name of NAMES)
      await mesh.client.create(WIDGETS, { apiVersion: `${GROUP}/v1`, kind: "Widget", metadata: { name } });
    const access = runner.pods.get("foo-1")?.processes.access;
    if (access === undefined) throw new Error("foo-1 does not run");
    const caPem = readFileSync(access.caFile, "utf8");
    client = createKubeClient({ server: access.server, caPem, token: () => access.token, userAgent: "test" });
    const log = createLogger({ name: "informer", level: "silent" });
    const informers = createInformers({ client, clock: systemClock, random: systemRandom, log });
    const store = informers.store(WIDGETS);
    const stopping = new AbortController();
    await informers.start(stopping.signal);
    await store.synced;
    stopInformers = async () => {
      stopping.abort();
      await informers.stop();
    };
    seen = () => store.list().map(({ metadata }) => metadata.name ?? "");
  }, 180_000);
  afterAll(async () => {
    await stopInformers();
    await client?.close();
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it.each(["without a write", "right after a write"])(
    "its informer has none of them once the home shard has them all (%s)",
    async (when) => {
      await mesh.apply(root("ByName"));
      await eventually(() => expect(seen().length).toBeGreaterThan(5), 30_000);
      await new Promise((resolve) => setTimeout(resolve, 7_000)); // nothing was written in the last 6 s
      const [mine = ""] = seen();
      const write = () =>
        client.patch(WIDGETS, { name: mine }, { type: "merge", body: { spec: { value: String(Math.random()) } } });
      let writing = when === "right after a write";
      const writer = (async () => {
        while (writing) {
          await write().catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await mesh.apply(root("Home"));
      // The home shard's pod sees all of them, so the shard has lost them.
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      writing = false;
      await writer;
      await new Promise((resolve) => setTimeout(resolve, 15_000));
      const listed = (await client.list(WIDGETS)).items.map(({ metadata }) => metadata.name);
      expect({ listed, seen: seen() }).toEqual({ listed: [], seen: [] });
    },
    120_000,
  );
});

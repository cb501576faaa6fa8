// Cluster-scoped objects that shards own by name, on the real control plane: a root divides them among the pods of a StatefulSet. The test
// itself sends the requests of each pod, and the API server's audit log says which pods wrote.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { PolicyStatus } from "../../src/api/policy-status.ts";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus, StatusError } from "../../src/kube/status.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { eventually } from "../support/eventually.ts";
import { startHelloServer } from "../support/hello-server.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { proxyReady } from "../support/proxy-launcher.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";
import { getThroughTunnel } from "../support/tunnel.ts";

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const GROUP = "by-name.test";
const WIDGETS: Resource = { group: GROUP, version: "v1", resource: "widgets", kind: "Widget", namespaced: false };
const COLLECTION = `/apis/${GROUP}/v1/widgets`;
const NAMES = Array.from({ length: 48 }, (_, index) => `widget-${index}`);

const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: "Cluster",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
    versions: [{ name: "v1", served: true, storage: true, schema }],
  },
};
const rights = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "widgets" },
    rules: [
      { apiGroups: [GROUP], resources: ["widgets"], verbs: ["*"] },
      { apiGroups: [""], resources: ["pods"], verbs: ["delete"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "widgets" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "widgets" },
    subjects: [{ kind: "ServiceAccount", name: "foo-operator", namespace: NAMESPACE }],
  },
];
const root = familyRoot(ROOT, { statefulSet: "foo", clusterScoped: "ByName", resources: [[GROUP, "widgets"]] });
const widget = (name: string, more: object = {}) => ({ apiVersion: `${GROUP}/v1`, kind: "Widget", metadata: { name, ...more } });

describeWithKube("cluster-scoped objects that shards own by name", () => {
  let kube: Kube;
  let mesh: Mesh;
  let runner: PodRunner;
  const clients = new Map<string, KubeClient>();

  /** The pod's own client, through its proxy. */
  const clientOf = (pod: string): KubeClient => {
    const access = runner.pods.get(pod)?.processes.access;
    if (access === undefined) throw new Error(`${pod} does not run`);
    const caPem = readFileSync(access.caFile, "utf8");
    const client =
      clients.get(pod) ?? createKubeClient({ server: access.server, caPem, token: () => access.token, userAgent: "test" });
    clients.set(pod, client);
    return client;
  };
  const codeOf = (sent: Promise<unknown>) =>
    sent.then(
      () => 200,
      (error: unknown) => {
        if (error instanceof StatusError) return error.status.code;
        throw error;
      },
    );
  const patch = (pod: string, name: string, value: string) =>
    codeOf(clientOf(pod).patch(WIDGETS, { name }, { type: "merge", body: { spec: { value } } }, { maxRetries: 0 }));
  const podNames = (count: number) => Array.from({ length: count }, (_, index) => `foo-${index}`);
  const scale = (replicas: number) =>
    mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "foo", replicas, version: "v1", hasEgress: true }));
  const status = async () => (await mesh.client.get(SHARDING_CONFIGS, ROOT)).status;
  const untilShards = (count: number) =>
    eventually(async () => {
      const now = await status();
      expect(now?.root?.childShardingConfigs).toHaveLength(count);
      expect(now?.conditions?.find(({ type }) => type === "Converged")).toMatchObject({ status: "True" });
      expect(now?.subsets?.filter(({ name }) => name !== "default").map(({ readyPods }) => readyPods)).toEqual(
        Array.from({ length: count }, () => 1),
      );
    }, 60_000);
  const namesOf = async (pod: string) =>
    (await clientOf(pod).list(WIDGETS)).items.map(({ metadata }) => metadata.name ?? "").sort();
  /** The pod that sees each object. */
  const ownersOf = async (count: number) => {
    const owners = new Map<string, string>();
    for (const pod of podNames(count)) {
      for (const name of await namesOf(pod)) {
        expect([name, owners.get(name)]).toEqual([name, undefined]);
        owners.set(name, pod);
      }
    }
    expect([...owners.keys()].sort()).toEqual([...NAMES].sort());
    return owners;
  };
  /** The pods that wrote the object, in the order of their writes. */
  const writersOf = (name: string) =>
    mesh
      .podWrites()
      .filter((write) => write.resource === "widgets" && write.name === name && write.code < 300)
      .map(({ pod }) => pod)
      .filter((pod, index, all) => pod !== all[index - 1]);

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube });
    for (const each of [crd, ...rights, root]) await mesh.apply(JSON.stringify(each));
    runner = startPodRunner({ kube, client: mesh.client, namespace: NAMESPACE, manager: String(mesh.manager.ready.grpc) });
    await scale(3);
    await untilShards(3);
  }, 180_000);
  afterAll(async () => {
    for (const client of clients.values()) await client.close();
    await runner?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("each is created, seen and written by one shard, and no namespace counts as one", { timeout: 60_000 }, async () => {
    const created = new Map<string, string>();
    for (const name of NAMES) {
      for (const pod of podNames(3)) {
        const code = await codeOf(clientOf(pod).create(WIDGETS, widget(name) as KubeObject));
        if (code === 200) created.set(name, pod);
        else expect([name, pod, code]).toEqual([name, pod, 403]);
      }
    }
    const owners = await ownersOf(3);
    expect(owners).toEqual(created);
    expect(new Set(owners.values())).toEqual(new Set(podNames(3)));
    for (const name of NAMES.slice(0, 12)) {
      for (const pod of podNames(3))
        expect([name, pod, await patch(pod, name, "x")]).toEqual([name, pod, owners.get(name) === pod ? 200 : 403]);
    }
    for (const name of NAMES) expect([name, writersOf(name)]).toEqual([name, [owners.get(name)]]);
    const generated = () => ({ ...widget(""), metadata: { generateName: "made-" } });
    expect(await codeOf(clientOf("foo-1").create(WIDGETS, generated() as KubeObject))).toBe(403);
    const made = await clientOf("foo-0").create(WIDGETS, generated() as KubeObject);
    await mesh.client.delete(WIDGETS, { name: made.metadata.name ?? "" });
    const namespaces = (await mesh.client.request({ method: "GET", path: "/api/v1/namespaces" })) as { items: unknown[] };
    expect((await status())?.shardNamespaces).toBe(namespaces.items.length);
  });

  it("a deletecollection is refused, since it would reach other shards' objects", async () => {
    for (const pod of podNames(3)) expect(await codeOf(clientOf(pod).request({ method: "DELETE", path: COLLECTION }))).toBe(403);
    await ownersOf(3);
  });

  it("move without a second writer when the StatefulSet is scaled, the others without one refusal, and watches go on", {
    timeout: 120_000,
  }, async () => {
    const before = await ownersOf(3);
    const { metadata } = await clientOf("foo-0").list(WIDGETS);
    const seen = new Map<string, Set<string>>();
    const ending = new AbortController();
    const watches = podNames(3).map(async (pod) => {
      const own = new Set([...before].flatMap(([name, owner]) => (owner === pod ? [name] : [])));
      seen.set(pod, own);
      const options = { resourceVersion: metadata.resourceVersion ?? "", signal: ending.signal };
      for await (const { type, object } of clientOf(pod).watch(WIDGETS, options)) {
        const { name = "" } = object.metadata;
        if (type === "DELETED") own.delete(name);
        else if (type !== "BOOKMARK") own.add(name);
      }
    });
    const ended = Promise.allSettled(watches);
    // Each object is written by its owner all the time: whoever it was at first, or foo-3.
    const codes = new Map<string, number[]>(NAMES.map((name) => [name, []]));
    let isOver = false;
    const load = (async () => {
      for (let round = 0; !isOver; round++) {
        for (const name of NAMES) {
          codes.get(name)?.push(await patch(before.get(name) ?? "", name, `round ${round}`));
          if (runner.pods.get("foo-3")?.processes.access !== undefined) await patch("foo-3", name, `round ${round} of foo-3`);
        }
      }
    })();
    await scale(4);
    await untilShards(4);
    const after = await eventually(async () => {
      const owners = await ownersOf(4);
      expect([...owners.values()]).toContain("foo-3");
      for (const [pod, own] of seen) expect([pod, [...own].sort()]).toEqual([pod, await namesOf(pod)]);
      return owners;
    });
    isOver = true;
    await load;
    const moved = NAMES.filter((name) => after.get(name) !== before.get(name));
    expect(moved.length).toBeGreaterThan(0);
    expect(moved.length).toBeLessThan(NAMES.length / 2);
    for (const name of NAMES) {
      const isMoved = moved.includes(name);
      expect([name, await patch(after.get(name) ?? "", name, "last")]).toEqual([name, 200]);
      if (!isMoved) expect([name, new Set(codes.get(name))]).toEqual([name, new Set([200])]);
      expect([name, writersOf(name)]).toEqual([name, isMoved ? [before.get(name), "foo-3"] : [before.get(name)]]);
    }
    ending.abort(new Error("the test is over"));
    const results = await ended;
    // No watch was ended by the mesh.
    for (const result of results) expect(result.status === "rejected" && isStatus(result.reason, "Expired")).toBe(false);
    for (const result of results) expect(result).toMatchObject({ status: "rejected" });
  });

  it("traffic policies of the family limit each pod by itself, an open breaker shows its pod, and a window closes the guard of deletes", {
    timeout: 60_000,
  }, async () => {
    const policy = async (kind: string, group: string, name: string, spec: object) => {
      await mesh.apply(JSON.stringify({ apiVersion: `${group}/v1alpha1`, kind, metadata: { name, namespace: NAMESPACE }, spec }));
      return async (): Promise<PolicyStatus> =>
        JSON.parse(await kubectl(kube.kubeconfig, ["get", kind, name, "-n", NAMESPACE, "-o", "json"])).status ?? {};
    };
    const about = (verb: string) => ({ apiGroups: [GROUP], resources: ["widgets"], verbs: [verb] });
    const limit = await policy("TrafficPolicy", "ctrlmesh.kruise.io", "limit", {
      targetVirtualApps: [{ name: ROOT.name }],
      rateLimiting: {
        ratePolicies: [{ rules: { resourceRules: [{ ...about("patch"), clusterScope: true }] }, bucket: { qps: 1, burst: 1 } }],
      },
    });
    const guard = await policy("CircuitBreaker", "ctrlmesh.kusionstack.io", "guard", {
      selector: { matchLabels: { component: ROOT.name } },
      rateLimitings: [
        {
          name: "deletes",
          resourceRules: [{ ...about("delete"), namespaces: ["*"] }],
          bucket: { burst: 1, interval: "1h", limit: 1 },
          triggerPolicy: "Normal",
          recoverPolicy: { type: "Manual" },
        },
        {
          name: "pods",
          resourceRules: [{ apiGroups: [""], resources: ["pods"], verbs: ["delete"], namespaces: ["*"] }],
          bucket: { burst: 1, interval: "2s", limit: 1 },
          triggerPolicy: "Normal",
          recoverPolicy: { type: "SleepingWindow", sleepingWindowSize: "4s" },
        },
      ],
    });
    for (const status of [limit, guard])
      await eventually(async () => expect((await status()).targets).toEqual({ total: 4, synced: 4, opened: 0 }), 20_000);
    const owners = await ownersOf(4);
    const [name = ""] = owners.keys();
    const owner = owners.get(name) ?? "";
    // Another shard's object is refused and costs nothing.
    expect(await patch(owner, [...owners].find(([, pod]) => pod !== owner)?.[0] ?? "", "foreign")).toBe(403);
    expect([await patch(owner, name, "a"), await patch(owner, name, "b")]).toEqual([200, 429]);
    const objectOf = (pod: string) => [...owners].find(([, each]) => each === pod)?.[0] ?? "";
    const erase = (pod: string) =>
      codeOf(clientOf(pod).request({ method: "DELETE", path: `${COLLECTION}/${objectOf(pod)}?dryRun=All` }));
    expect([await erase("foo-1"), await erase("foo-1"), await erase("foo-2")]).toEqual([200, 503, 200]);
    await eventually(async () => {
      const { targets, targetStatus } = await guard();
      expect(targets).toEqual({ total: 4, synced: 4, opened: 1 });
      expect(targetStatus?.[0]).toMatchObject({
        podName: "foo-1",
        limitingSnapshots: [
          { name: "deletes", state: "Opened" },
          { name: "pods", state: "Closed" },
        ],
      });
    }, 10_000);
    const pods = "/api/v1/namespaces/default/pods";
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "none" } };
    const send = (method: "DELETE" | "POST", path: string, body?: object) =>
      codeOf(clientOf("foo-0").request({ method, path, maxRetries: 0, ...(body === undefined ? {} : { body }) }));
    const erasePod = () => send("DELETE", `${pods}/none`);
    const codes = [
      await erasePod(),
      await erasePod(),
      await send("POST", `${pods}/none/eviction`, eviction),
      await send("DELETE", pods),
    ];
    expect(codes).toEqual([404, 503, 503, 503]);
    await eventually(async () => expect(await erasePod()).toBe(404), 10_000);
    await kubectl(kube.kubeconfig, ["delete", "circuitbreaker/guard", "trafficpolicy/limit", "-n", NAMESPACE]);
    await eventually(async () => expect(await erase("foo-1")).toBe(200), 10_000);
  });

  it("calls of other servers pass only to listed hosts, and each pod of the family counts its own", {
    timeout: 60_000,
  }, async () => {
    const server = await startHelloServer();
    try {
      const host = `localhost:${server.port}`;
      const methods = ["CONNECT"];
      const spec = {
        selector: { matchLabels: { component: ROOT.name } },
        trafficInterceptRules: [
          { name: "hosts", interceptType: "Whitelist", contentType: "Normal", contents: ["localhost"], methods },
        ],
        rateLimitings: [
          {
            name: "rate",
            restRules: [{ url: `https://${host}/*`, method: "CONNECT" }],
            bucket: { burst: 1, interval: "1h", limit: 1 },
            triggerPolicy: "LimiterOnly",
          },
        ],
      };
      const head = { apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind: "CircuitBreaker" };
      await mesh.apply(JSON.stringify({ ...head, metadata: { name: "calls", namespace: NAMESPACE }, spec }));
      const args = ["get", "circuitbreaker", "calls", "-n", NAMESPACE, "-o", "jsonpath={.status.targets}"];
      await eventually(
        async () => expect(JSON.parse(await kubectl(kube.kubeconfig, args))).toEqual({ total: 4, synced: 4, opened: 0 }),
        20_000,
      );
      const call = async (pod: string, address: string) => {
        const proxy = runner.pods.get(pod)?.processes.proxy;
        if (proxy === undefined) throw new Error(`${pod} does not run`);
        return (await getThroughTunnel(proxyReady(proxy).egressUrl ?? "", address, server.ca)).status;
      };
      expect([await call("foo-0", host), await call("foo-0", host)]).toEqual([200, 429]);
      expect([await call("foo-1", host), await call("foo-1", `127.0.0.1:${server.port}`)]).toEqual([200, 403]);
      await kubectl(kube.kubeconfig, ["delete", "circuitbreaker", "calls", "-n", NAMESPACE]);
    } finally {
      server.close();
    }
  });
});

// Two roots of one name in two namespaces, on the real control plane: KusionStack's sample unchanged, with real operators, and a root that scales and
// changes its canary, whose pods are proxies alone. 200 namespaces are divided, and the pods are asked what they may write and see.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { NAMESPACE, POD_NAME, SHARD_HASH } from "../../src/api/sharding-keys.ts";
import { LEASES, NAMESPACES } from "../../src/kube/client/resources.ts";
import { nameHash } from "../../src/kube/place.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { prepareCluster } from "../support/mesh/cluster.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { NAME_SETS } from "../support/name-sets.ts";
import { type PodRunner, startPodRunner } from "../support/pod-runner.ts";
import { describeWithKube } from "../support/requirements.ts";
import { askPods, viewsOf } from "../support/sharding/pod-probes.ts";
import { familyRoot } from "../support/sharding-config.ts";

const SAMPLE = "operator-demo";
const TWIN = "operator-twin";
const CANARY = "ns-canary";
const NAMES = [CANARY, ...(NAME_SETS[3]?.[1] ?? []).slice(0, 199)];
/** `spec.ordinals.start` of the second StatefulSet. */
const START = 3;
const CANARY_POD = `operator-demo-${START}`;

const twin = JSON.stringify(
  familyRoot(
    { namespace: TWIN, name: "sharding-root" },
    {
      prefix: "demo",
      statefulSet: "operator-demo",
      canary: { replicas: 1, inNamespaces: [CANARY] },
      auto: { everyShardReplicas: 1, graceSeconds: 3600, maxMovedPercentPerHour: 10_000 },
      resources: [["", "configmaps"]],
    },
  ),
);

describeWithKube("two roots of one name in two namespaces", () => {
  let kube: Kube;
  let mesh: Mesh;
  let sample: PodRunner;
  let twins: PodRunner;

  const workload = (namespace: string, replicas: number, start = 0) =>
    injectedWorkload({
      kind: "StatefulSet",
      name: "operator-demo",
      namespace,
      app: "sharding-root",
      replicas,
      start,
      version: "v1",
    });
  const config = (namespace: string, name = "sharding-root") => mesh.client.get(SHARDING_CONFIGS, { namespace, name });
  const childrenIn = async (namespace: string) =>
    (await mesh.client.list(SHARDING_CONFIGS, { namespace })).items.filter(({ spec }) => spec.root === undefined);
  const identities = async (namespace: string) =>
    (await childrenIn(namespace)).map(({ metadata: { name, uid, generation } }) => ({ name, uid, generation }));
  const untilShards = (namespace: string, shards: number) =>
    eventually(async () => {
      const { metadata, status } = await config(namespace);
      expect(status?.root?.childShardingConfigs).toHaveLength(shards);
      const converged = status?.conditions?.find(({ type }) => type === "Converged");
      expect(converged).toMatchObject({ status: "True", observedGeneration: metadata.generation });
      const owning = (status?.subsets ?? []).filter(({ namespaces, readyPods }) => namespaces > 0 && readyPods > 0);
      expect(owning).toHaveLength(shards);
      expect(status?.namespaces?.moving).toBe(0);
      return status;
    }, 60_000);
  /** Each namespace is in the view of one pod. */
  const twinViews = async () => {
    const views = await viewsOf(twins);
    const all = (await mesh.client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name ?? "").sort();
    expect([...views.values()].flat().sort()).toEqual(all);
    return views;
  };
  const changeCanary = async (canary: object) => {
    await mesh.client.patch(
      SHARDING_CONFIGS,
      { namespace: TWIN, name: "sharding-root" },
      { type: "merge", body: { spec: { root: { canary } } } },
    );
    const status = await untilShards(TWIN, 5);
    expect(status?.gaps).toBe(0);
    return await twinViews();
  };

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    mesh = await startMesh({ kube, appNamespace: SAMPLE });
    await prepareCluster(kube, TWIN);
    for (const namespace of [SAMPLE, TWIN]) {
      const binding = ["create", "clusterrolebinding", `all-${namespace}`, "--clusterrole=cluster-admin"];
      await kubectl(kube.kubeconfig, [...binding, `--serviceaccount=${namespace}:foo-operator`]);
    }
    // Only names count: by these labels each namespace would belong to another shard than by its name.
    const planted = (name: string) => ({ [SHARD_HASH]: String((nameHash(name) + 16) % 32), [NAMESPACE]: CANARY });
    await Promise.all(NAMES.map((name) => mesh.createNamespace(name, planted(name))));
    await mesh.apply(readFileSync(new URL("../../examples/sharding/root.yaml", import.meta.url), "utf8"));
    await mesh.apply(twin);
    const options = { kube, client: mesh.client, manager: String(mesh.manager.ready.grpc) };
    sample = startPodRunner({ ...options, namespace: SAMPLE, lockName: "operator-leader" });
    twins = startPodRunner({ ...options, namespace: TWIN });
    await mesh.apply(workload(SAMPLE, 5));
    await mesh.apply(workload(TWIN, 5, START));
    await untilShards(SAMPLE, 3);
    await untilShards(TWIN, 5);
  }, 180_000);
  afterAll(async () => {
    await sample?.stop();
    await twins?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  it("the sample applies unchanged: the original's children, and a lock for each that an operator of its pods holds", {
    timeout: 60_000,
  }, async () => {
    const half = (first: number) => Array.from({ length: 16 }, (_, index) => String(first + index));
    const outside = { key: NAMESPACE, operator: "NotIn", values: [CANARY] };
    const expected = [
      { name: "demo-0-canary", pods: ["operator-demo-0"], terms: [{ key: NAMESPACE, operator: "In", values: [CANARY] }] },
      ...[1, 2].map((number) => ({
        name: `demo-${number}-normal`,
        pods: [`operator-demo-${2 * number - 1}`, `operator-demo-${2 * number}`],
        terms: [outside, { key: SHARD_HASH, operator: "In", values: half(16 * (number - 1)) }],
      })),
    ];
    const found = (await childrenIn(SAMPLE)).map(({ metadata, spec }: ShardingConfig) => ({
      name: metadata.name,
      pods: spec.selector?.matchExpressions?.find(({ key }) => key === POD_NAME)?.values,
      terms: spec.limits?.[0]?.selector?.matchExpressions,
    }));
    expect(found).toEqual(expected);
    await eventually(async () => {
      for (const { name, pods } of expected) {
        const lease = { namespace: SAMPLE, name: `operator-leader---${name}` };
        const { holderIdentity = "" } = (await mesh.client.get(LEASES, lease)).spec ?? {};
        expect(pods).toContain(holderIdentity.split("_")[0]);
      }
    }, 20_000);
  });

  it("each of 200 namespaces has one writing shard for named resources whatever its labels, and every pod writes the others", {
    timeout: 60_000,
  }, async () => {
    const ownerOf = (name: string) => (name === CANARY ? "canary" : nameHash(name) < 16 ? "first" : "second");
    const shardOf = (pod: string) => ["canary", "first", "first", "second", "second"][Number(pod.at(-1))];
    const codes = await askPods(sample, async (probe, pod) => {
      const create = async (namespace: string, resource: string) => {
        const body = { metadata: { name: `of-${pod}` } };
        return (
          await probe.send("POST", `/api/v1/namespaces/${namespace}/${resource}`, body, { "content-type": "application/json" })
        ).status;
      };
      const answers: { namespace: string; named: number; other: number }[] = [];
      for (const namespace of NAMES) {
        answers.push({
          namespace,
          named: await create(namespace, "configmaps"),
          other: await create(namespace, "serviceaccounts"),
        });
      }
      return answers;
    });
    expect([...codes.keys()]).toHaveLength(5);
    for (const [pod, answers] of codes) {
      const named = (namespace: string) => (ownerOf(namespace) === shardOf(pod) ? 201 : 403);
      expect(answers).toEqual(NAMES.map((namespace) => ({ namespace, named: named(namespace), other: 201 })));
    }
  });

  it("one follows its StatefulSet from 5 to 9 and back to 5 with ordinals from 3, and the other does not notice", {
    timeout: 120_000,
  }, async () => {
    const before = { children: await identities(SAMPLE), lastHandover: (await config(SAMPLE)).status?.lastHandover };
    for (const replicas of [9, 5]) {
      await mesh.apply(workload(TWIN, replicas, START));
      await untilShards(TWIN, replicas);
      const ordinals = Array.from({ length: replicas }, (_, index) => START + index);
      // The StatefulSet controller deletes the pods one after the other, after the manager has taken their shards.
      await eventually(async () => {
        const pods = [...(await twinViews()).keys()].map((pod) => Number(pod.slice("operator-demo-".length)));
        expect(pods.sort((a, b) => a - b)).toEqual(ordinals);
      }, 60_000);
    }
    const lastHandover = (await config(SAMPLE)).status?.lastHandover;
    expect({ children: await identities(SAMPLE), lastHandover }).toEqual(before);
  });

  it("a canary with both lists has what is in one of them, and nothing is without an owner", { timeout: 60_000 }, async () => {
    const views = await changeCanary({ inShardHash: ["3", "12"] });
    const isCanary = (name: string) => name === CANARY || [3, 12].includes(nameHash(name));
    const all = [...views.values()].flat().sort();
    expect(views.get(CANARY_POD)).toEqual(all.filter(isCanary));
    expect(all.filter(isCanary).length).toBeGreaterThan(2);
  });

  it("a canary of 25 per cent has more than one of 5, and going back gives each shard exactly what it had", {
    timeout: 60_000,
  }, async () => {
    const before = await changeCanary({ inNamespaces: null, inShardHash: null, percent: 5 });
    const larger = (await changeCanary({ percent: 25 })).get(CANARY_POD) ?? [];
    const canary = before.get(CANARY_POD) ?? [];
    expect(canary.length).toBeGreaterThan(0);
    expect(larger.length).toBeGreaterThan(canary.length);
    expect(larger).toEqual(expect.arrayContaining(canary));
    expect(await changeCanary({ percent: 5 })).toEqual(before);
  });

  it("the deletion of one takes its own children, and not the other's", { timeout: 60_000 }, async () => {
    const before = await identities(SAMPLE);
    await kubectl(kube.kubeconfig, ["delete", "shard", "sharding-root", "-n", TWIN, "--wait=false"]);
    await eventually(
      async () => expect((await mesh.client.list(SHARDING_CONFIGS, { namespace: TWIN })).items).toEqual([]),
      40_000,
    );
    expect(await identities(SAMPLE)).toEqual(before);
    await untilShards(SAMPLE, 3);
  });
});

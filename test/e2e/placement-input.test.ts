// Rules that follow PlacementDecisions, on the real control plane with the real CRD of SIG Multicluster: another program decides which
// subset owns a real second cluster.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { PLACEMENT_DECISIONS } from "../../src/api/placement-decision.ts";
import { MESH_CLUSTERS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { applyProfile, installInventory } from "../support/cluster-inventory.ts";
import { type ClusterWriter, prepareCluster, startClusterWriter } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";
import { familyRoot } from "../support/sharding-config.ts";

const NAMESPACE = "foo-system";
/** Also on a busy machine, and after a change of the leader. */
const NOTICED_MS = 60_000;

describeWithKube("clusters that a PlacementDecision gives to a subset", () => {
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  const writers: ClusterWriter[] = [];

  const run = (...args: string[]) => kubectl(home.kubeconfig, args);
  const decide = (name: string, clusters: readonly string[], key = "fleet") =>
    kubectl(
      home.kubeconfig,
      ["apply", "-f", "-"],
      stringify({
        apiVersion: "multicluster.x-k8s.io/v1alpha1",
        kind: "PlacementDecision",
        metadata: { namespace: NAMESPACE, name, labels: { "multicluster.x-k8s.io/decision-key": key } },
        schedulerName: "test",
        decisions: clusters.map((each) => ({ clusterProfileRef: { name: each } })),
      }),
    );
  const follow = (...match: object[]) => {
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push(...match);
    return mesh.apply(stringify(app));
  };
  const meshCluster = async () => {
    const { items } = await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE });
    return items.find(({ metadata }) => metadata.name === "eu");
  };
  const owner = async () => (await meshCluster())?.status?.owners?.[0]?.subset;
  const decided = async () => (await meshCluster())?.status?.conditions?.find(({ type }) => type === "Decided");
  const writes = (index: 0 | 1) => expect(writers.map(({ last }) => last.eu?.slice(0, 3))[index]).toBe("200");
  const isRefused = (index: 0 | 1) => expect(writers[index]?.last.eu).toContain("403");

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube({ controllerManager: true }), startKube()]);
    // Before the managers start: they look for the CRDs every 30 s. cluster-profiles.test.ts installs them later.
    await installInventory(home);
    mesh = await startMesh({ kube: home, managers: 2 });
    await prepareCluster(eu);
    await applyProfile(home, { namespace: NAMESPACE, name: "eu", servers: [eu.server] });
  });
  afterAll(async () => {
    for (const writer of writers) await writer.stop();
    await mesh?.stop();
    await home?.stop();
    await eu?.stop();
  });

  it("are closed to it while the decision is missing, and the status and an Event say so", async () => {
    await follow({ clustersFrom: { placementDecision: "fleet" } });
    await eventually(async () => expect(await meshCluster()).toBeDefined(), NOTICED_MS);
    await run("patch", "meshcluster", "eu", "-n", NAMESPACE, "--type=merge", "-p", '{"spec":{"drainSeconds":2}}');
    for (const [name, version] of Object.entries({ "foo-0": "v1", "canary-0": "v2" })) {
      writers.push(await startClusterWriter(await mesh.addPod({ name, labels: { version }, egress: true }), { eu }));
    }
    await eventually(() => {
      writes(0);
      isRefused(1);
    }, NOTICED_MS);
    await eventually(async () => expect(await decided()).toMatchObject({ status: "False", reason: "DecisionMissing" }));
    const { items } = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
    expect(items.filter(({ reason }) => reason === "PlacementDecisionMissing")).toMatchObject([
      { involvedObject: { kind: "VirtualApp", name: "foo-operator" }, message: expect.stringContaining("decision-key=fleet") },
    ]);
  });

  it("move to it when a slice of the decision names them", async () => {
    await decide("fleet-0", []);
    await eventually(async () => expect(await decided()).toMatchObject({ status: "True", reason: "ByRules" }));
    expect(await owner()).toBe("default");
    await decide("fleet-1", ["us", "eu"]);
    await eventually(() => {
      writes(1);
      isRefused(0);
    }, NOTICED_MS);
    expect(await owner()).toBe("v2");
  });

  it("do not follow what the manager itself has published", async () => {
    await eventually(async () => {
      const published = await mesh.client.list(PLACEMENT_DECISIONS, { namespace: NAMESPACE });
      expect(published.items.map(({ metadata }) => metadata.name)).toContain("foo-operator.v2-0");
    });
    await follow({ clustersFrom: { placementDecision: "foo-operator.v2" } });
    await eventually(async () => expect((await decided())?.message).toContain("decision-key=foo-operator.v2"));
    await follow({ clustersFrom: { placementDecision: "fleet" } });
    await eventually(async () => expect(await decided()).toMatchObject({ status: "True" }));
    expect(await owner()).toBe("v2");
  });

  it("stay with it when the decision is deleted, also at a new leader", async () => {
    const version = async () =>
      (await mesh.client.get(VIRTUAL_APPS, { namespace: NAMESPACE, name: "foo-operator" })).status?.routeDigest;
    const before = await version();
    await run("delete", "placementdecision", "fleet-0", "fleet-1", "-n", NAMESPACE);
    await eventually(async () => expect(await decided()).toMatchObject({ status: "False", reason: "DecisionMissing" }));
    await mesh.managers[0]?.crash();
    await run("label", "meshcluster", "eu", "-n", NAMESPACE, "seen=by-the-new-leader");
    await eventually(async () => expect((await meshCluster())?.metadata.labels?.seen).toBeUndefined(), NOTICED_MS);
    await eventually(() => writes(1));
    isRefused(0);
    expect([await owner(), await version()]).toEqual(["v2", before]);
  });

  it("leave it when a decision names no cluster", async () => {
    await decide("fleet-0", []);
    await eventually(() => {
      writes(0);
      isRefused(1);
    }, NOTICED_MS);
    expect(await owner()).toBe("default");
  });

  it("are shared by the shards of a root, closed to them when the decision drops them, and kept while it is missing", async () => {
    const [root, shard] = [{ namespace: NAMESPACE, name: "bar-operator" }, "bar-1-normal"];
    const clustersFrom = { placementDecision: "fleet" };
    await mesh.apply(JSON.stringify(familyRoot(root, { statefulSet: "bar", clustersFrom, resources: [["", "configmaps"]] })));
    await mesh.apply(injectedWorkload({ kind: "StatefulSet", name: "bar", app: root.name, replicas: 1, version: "v1" }));
    const ownerIs = (subset: string) =>
      eventually(async () => {
        const { owners = [] } = (await meshCluster())?.status ?? {};
        expect(owners.find(({ app }) => app === root.name)).toEqual({ app: root.name, subset });
      }, 30_000);
    await ownerIs("default");
    await decide("fleet-0", ["eu"]);
    await ownerIs(shard);
    await run("delete", "placementdecision", "fleet-0", "-n", NAMESPACE);
    await eventually(async () => expect(await decided()).toMatchObject({ status: "False" }));
    await ownerIs(shard);
    await decide("fleet-0", []);
    await ownerIs("default");
  });

  it("are refused by the API server in a rule with two selectors", async () => {
    await expect(follow({ clustersFrom: { placementDecision: "fleet" }, clusters: ["eu"] })).rejects.toThrow(
      /at most one of clusters, clusterSelector and clustersFrom may be set/,
    );
  });
});

// MeshClusters from ClusterProfiles, and PlacementDecisions, on the real control plane with the real CRDs of SIG Multicluster: an operator
// divides a real second cluster that nobody described to the mesh but its profile.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { PLACEMENT_DECISIONS } from "../../src/api/placement-decision.ts";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { EVENTS } from "../../src/kube/client/resources.ts";
import { applyProfile, installInventory, removeInventory } from "../support/cluster-inventory.ts";
import { type ClusterWriter, prepareCluster, startClusterWriter } from "../support/cluster-writer.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube, itNightly } from "../support/requirements.ts";

const NAMESPACE = "foo-system";
/** The manager looks for a CRD that was absent every 30 s. */
const NOTICED_MS = 60_000;

describeWithKube("ClusterProfiles", () => {
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  const writers: ClusterWriter[] = [];

  const run = (...args: string[]) => kubectl(home.kubeconfig, args);
  const meshClusters = async () => (await mesh.client.list(MESH_CLUSTERS, { namespace: NAMESPACE })).items;
  const meshCluster = async (name: string) => (await meshClusters()).find(({ metadata }) => metadata.name === name);
  const placements = async () => {
    const { items } = await mesh.client.list(PLACEMENT_DECISIONS, { namespace: NAMESPACE });
    return Object.fromEntries(
      items.map(({ metadata, decisions }) => [metadata.name, decisions.map(({ clusterProfileRef }) => clusterProfileRef.name)]),
    );
  };
  const eventsAbout = async (name: string) => {
    const { items } = await mesh.client.list(EVENTS, { namespace: NAMESPACE });
    return items.filter(({ involvedObject }) => involvedObject.kind === "ClusterProfile" && involvedObject.name === name);
  };
  const profile = (name: string, servers: readonly string[], labels: Readonly<Record<string, string>> = { region: name }) =>
    applyProfile(home, { namespace: NAMESPACE, name, labels, servers });
  const divide = (match?: object) => {
    const app = parse(demoVirtualApp());
    if (match !== undefined) app.spec.route.subRules[0].match.push(match);
    return mesh.apply(stringify(app));
  };
  /** Lines of the manager's log that are warnings or errors about the inventory. */
  const complaints = () =>
    mesh.managers
      .flatMap(({ child }) => child.output().split("\n"))
      .filter(
        (line) => /"level":"?(warn|error|40|50)/.test(line) && /multicluster|clusterprofiles|placementdecisions/.test(line),
      );

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube({ controllerManager: true }), startKube()]);
    mesh = await startMesh({ kube: home, managers: 2 });
    await prepareCluster(eu);
    // Before an app asks for it: the manager looks again for an absent CRD only after 30 s. The nightly test waits for that.
    await installInventory(home);
    await divide({ clusterSelector: { matchLabels: { region: "eu" } } });
  });
  afterAll(async () => {
    for (const writer of writers) await writer.stop();
    await mesh?.stop();
    await home?.stop();
    await eu?.stop();
  });

  it("become MeshClusters, and the manager that began without their CRD does not complain", async () => {
    expect(complaints()).toEqual([]);
    await applyProfile(home, {
      namespace: NAMESPACE,
      name: "eu",
      labels: { region: "eu" },
      servers: [eu.server],
      clusterID: "id-eu",
    });
    await eventually(async () => expect(await meshCluster("eu")).toBeDefined(), NOTICED_MS);
    const uid = await run("get", "clusterprofile", "eu", "-n", NAMESPACE, "-o", "jsonpath={.metadata.uid}");
    expect(await meshCluster("eu")).toMatchObject({
      metadata: { labels: { region: "eu" }, ownerReferences: [{ kind: "ClusterProfile", name: "eu", uid, controller: true }] },
      spec: { servers: [eu.server], clusterID: "id-eu", discoveredBy: [{ resource: "clusterprofiles", name: "eu" }] },
    });
  });

  it("give a cluster one writer", async () => {
    await run("patch", "meshcluster", "eu", "-n", NAMESPACE, "--type=merge", "-p", '{"spec":{"drainSeconds":2}}');
    for (const [name, version] of Object.entries({ "foo-0": "v1", "canary-0": "v2" })) {
      writers.push(await startClusterWriter(await mesh.addPod({ name, labels: { version }, egress: true }), { eu }));
    }
    await eventually(() => {
      expect(writers[1]?.last).toEqual({ eu: "200" });
      expect(writers[0]?.last).toEqual({ eu: expect.stringContaining("403") });
    }, NOTICED_MS);
  });

  it("are followed, and drainSeconds stays as the user has set it", async () => {
    await applyProfile(home, {
      namespace: NAMESPACE,
      name: "eu",
      labels: { region: "elsewhere" },
      servers: [eu.server, "https://10.20.0.5:6443"],
    });
    await eventually(async () =>
      expect(await meshCluster("eu")).toMatchObject({
        metadata: { labels: { region: "elsewhere" } },
        spec: { servers: [eu.server, "https://10.20.0.5:6443"], clusterID: "id-eu", drainSeconds: 2 },
      }),
    );
    await eventually(() => expect(writers[0]?.last).toEqual({ eu: "200" }), NOTICED_MS);
    expect(writers[1]?.last).toEqual({ eu: expect.stringContaining("403") });
  });

  it("that lose their servers keep their MeshCluster, and an Event names the field", async () => {
    await profile("eu", []);
    await eventually(async () => expect(await eventsAbout("eu")).toMatchObject([{ reason: "NoServers" }]));
    expect((await eventsAbout("eu"))[0]?.message).toContain("status.accessProviders has no cluster.server");
    expect((await meshCluster("eu"))?.spec.servers).toHaveLength(2);
    await profile("eu", [eu.server], { region: "eu" });
    await eventually(async () => expect((await meshCluster("eu"))?.spec.servers).toEqual([eu.server]));
  });

  it("with a server that is not https make none, and neither does one whose name a person's MeshCluster has", async () => {
    await profile("plain", ["http://plain.example"]);
    await mesh.apply(
      stringify({
        apiVersion: "ctrlmesh.kruise.io/v1alpha1",
        kind: "MeshCluster",
        metadata: { namespace: NAMESPACE, name: "own" },
        spec: { servers: ["https://own.example"] },
      }),
    );
    await profile("own", ["https://other.example"]);
    await eventually(async () => {
      expect(await eventsAbout("plain")).toMatchObject([
        { reason: "ServerNotUsable", message: expect.stringContaining("status.accessProviders[0].cluster.server must be a URL") },
      ]);
      expect((await eventsAbout("own")).map(({ reason }) => reason)).toContain("MeshClusterExists");
    });
    expect((await meshClusters()).map(({ metadata }) => metadata.name)).toEqual(["eu", "own"]);
    expect((await meshCluster("own"))?.spec.servers).toEqual(["https://own.example"]);
  });

  it("with a thousand providers, or a name of 253 characters, make the others wait for nothing", async () => {
    await profile(
      "many",
      Array.from({ length: 1_000 }, (_, at) => `https://c-${at}.example`),
    );
    const long = `${"a".repeat(126)}.${"b".repeat(126)}`;
    await profile(long, ["https://long.example"], { region: "eu" });
    await eventually(async () => {
      expect(await eventsAbout("many")).toMatchObject([{ reason: "TooManyServers" }]);
      expect(await meshCluster(long)).toBeDefined();
    });
    await eventually(async () => expect(await placements()).toEqual({ "foo-operator.v2-0": [long, "eu"] }), NOTICED_MS);
  });

  it("are named by PlacementDecisions, which follow the rules and end with them", async () => {
    await divide({ clusters: ["eu"] });
    await eventually(async () =>
      expect(await placements()).toEqual({
        "foo-operator.v2-0": ["eu"],
        "foo-operator.default-0": [expect.stringMatching(/^aaa/)],
      }),
    );
    const labels = await run(
      "get",
      "placementdecision",
      "foo-operator.v2-0",
      "-n",
      NAMESPACE,
      "-o",
      "jsonpath={.metadata.labels}",
    );
    expect(JSON.parse(labels)).toEqual({
      "ctrlmesh.kruise.io/app": "foo-operator",
      "multicluster.x-k8s.io/decision-key": "foo-operator.v2",
      "multicluster.x-k8s.io/decision-index": "0",
    });
    await divide();
    await eventually(async () => expect(await placements()).toEqual({}));
    expect(await meshCluster("eu")).toBeDefined();
    await divide({ clusters: ["eu"] });
    await eventually(async () => expect(Object.keys(await placements())).toHaveLength(2));
  });

  it("are followed by a new leader, which writes nothing that is right already", async () => {
    const versions = async () => {
      const { items } = await mesh.client.list(PLACEMENT_DECISIONS, { namespace: NAMESPACE });
      return [...items, ...(await meshClusters())].map(({ metadata: { name, generation, labels } }) => [
        name,
        generation,
        labels,
      ]);
    };
    const before = await versions();
    await mesh.managers[0]?.crash();
    await profile("late", ["https://late.example"]);
    await eventually(async () => expect(await meshCluster("late")).toBeDefined(), NOTICED_MS);
    expect((await versions()).filter(([name]) => name !== "late")).toEqual(before);
    await run("delete", "clusterprofile", "late", "-n", NAMESPACE);
  });

  it("that are deleted take their MeshCluster along, unless the deletion orphans it", async () => {
    await run("delete", "clusterprofile", "many", "plain", "-n", NAMESPACE);
    await run("delete", "clusterprofile", "eu", "-n", NAMESPACE, "--cascade=orphan");
    await eventually(async () => expect((await meshCluster("eu"))?.metadata.ownerReferences ?? []).toEqual([]), NOTICED_MS);
    const long = (await meshClusters()).find(({ metadata }) => metadata.name?.startsWith("aaa"))?.metadata.name ?? "";
    await run("delete", "clusterprofile", long, "-n", NAMESPACE);
    await eventually(async () => expect(await meshCluster(long)).toBeUndefined(), NOTICED_MS);
    expect((await meshClusters()).map(({ metadata }) => metadata.name)).toEqual(["eu", "own"]);
  });

  itNightly(
    "whose CRD is removed leave the manager calm, and it follows them when the CRD is back",
    async () => {
      await removeInventory(home);
      // The manager notices it at its next look, after 30 s. Until then, watches fail and are tried again.
      let last = -1;
      const isCalm = async () => {
        await new Promise((resolve) => setTimeout(resolve, 15_000)); // a failing list would be repeated in this time
        const before = last;
        last = complaints().length;
        expect(last).toBe(before);
      };
      await eventually(isCalm, { withinMs: 120_000 });
      expect(last).toBeLessThan(30);
      await installInventory(home);
      await profile("asia", ["https://asia.example"]);
      await eventually(async () => expect(await meshCluster("asia")).toBeDefined(), NOTICED_MS);
    },
    180_000,
  );
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ControllerWorld, createControllerWorld } from "../../../test/support/controller-world.ts";
import type { FakeCall, FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { type ClusterProfile, clusterProfiles, PROFILE_VERSIONS } from "../../api/cluster-profile.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { App } from "../apps/app.ts";
import { addProfilesController } from "./add.ts";

const REF = { namespace: "fleet", name: "eu" };
const OLD = clusterProfiles("v1alpha1");

describe("the profiles controller", () => {
  let world: ControllerWorld;
  let client: FakeKubeClient;
  let divides: boolean;
  let served: readonly string[];
  let discoveries: number;
  let events: string[];
  let appChanged: () => void;

  const profile = (name: string, server = `https://${name}.example`, labels = {}): ClusterProfile => ({
    metadata: { namespace: "fleet", name, labels },
    status: { accessProviders: [{ name: "p", cluster: { server } }] },
  });
  const meshCluster = (name = "eu") => client.read(MESH_CLUSTERS, { namespace: "fleet", name });
  const calls = (verb: string, resource: string) =>
    client.calls.filter((call: FakeCall) => call.verb === verb && call.resource === resource);
  const settle = (ms = 1_000) => world.settle(ms);

  beforeEach(async () => {
    world = createControllerWorld();
    client = world.client;
    divides = true;
    served = ["v1alpha1"];
    discoveries = 0;
    events = [];
    client.request = async ({ path }) => {
      discoveries++;
      const version = PROFILE_VERSIONS.find((each) => path === `/apis/multicluster.x-k8s.io/${each}`);
      if (version === undefined || !served.includes(version)) throw new StatusError("NotFound", "no such page");
      return { resources: [{ name: "serviceexports" }, { name: "clusterprofiles" }] };
    };
    const controller = addProfilesController({
      ...world.base,
      apps: {
        list: () => [{ spec: divides ? { clusterOwners: () => new Map() } : {}, isEnding: false } as unknown as App],
        onChange: (handler: (change: unknown) => void) => {
          appChanged = () => handler({ type: "added", object: { metadata: { namespace: "fleet", name: "app" } } });
          return () => undefined;
        },
      } as never,
      events: { event: (object, _, reason) => void events.push(`${object.metadata.name} ${reason}`) },
    });
    await world.start(controller);
    await world.clock.flush();
    appChanged();
  });
  afterEach(() => world.stop());

  it("makes a MeshCluster when a profile appears, follows it, and writes nothing without a change", async () => {
    client.put(OLD, profile("eu", undefined, { region: "eu" }));
    await settle();
    await settle();
    expect(meshCluster()).toMatchObject({
      metadata: { labels: { region: "eu" } },
      spec: { servers: ["https://eu.example"] },
    });
    client.put(OLD, profile("eu", "https://new.example", { region: "eu-2" }));
    await settle();
    expect(meshCluster()).toMatchObject({
      metadata: { labels: { region: "eu-2" } },
      spec: { servers: ["https://new.example"] },
    });
    await settle(120_000);
    expect([calls("create", "meshclusters").length, calls("patch", "meshclusters").length]).toEqual([1, 1]);
  });

  it("puts an edit of the servers right, keeps drainSeconds, and makes a deleted MeshCluster again", async () => {
    client.put(OLD, profile("eu"));
    await settle();
    await settle();
    const { spec: _, ...rest } = meshCluster() as MeshCluster;
    const metadata = { ...rest.metadata, generation: 2 };
    client.put(MESH_CLUSTERS, { ...rest, metadata, spec: { servers: ["https://evil.example"], drainSeconds: 5 } } as never);
    await settle();
    expect(meshCluster()?.spec).toEqual({ servers: ["https://eu.example"], drainSeconds: 5 });
    client.remove(MESH_CLUSTERS, REF);
    await settle();
    expect(meshCluster()?.spec).toMatchObject({ servers: ["https://eu.example"] });
  });

  it("does nothing, and watches no profiles, while no app divides clusters", async () => {
    await settle();
    expect(calls("list", "clusterprofiles")).toHaveLength(1);
    divides = false;
    appChanged();
    await settle();
    client.put(OLD, profile("eu"));
    const before = discoveries;
    await settle(120_000);
    expect([meshCluster(), discoveries]).toEqual([undefined, before]);
  });

  it("asks twice a minute while the kind is absent, and lists nothing; it finds the kind when it arrives", async () => {
    served = [];
    await settle(60_000); // the first answer is forgotten
    const lists = calls("list", "clusterprofiles").length;
    discoveries = 0;
    await settle(300_000);
    expect(calls("list", "clusterprofiles")).toHaveLength(lists);
    expect(discoveries / PROFILE_VERSIONS.length).toBeLessThanOrEqual(11);
    served = ["v1alpha2"];
    client.put(clusterProfiles("v1alpha2"), profile("eu"));
    await settle(31_000);
    await settle();
    expect(meshCluster()?.metadata.ownerReferences).toMatchObject([{ apiVersion: "multicluster.x-k8s.io/v1alpha2" }]);
  });

  it("keeps the MeshClusters when the kind is removed", async () => {
    client.put(OLD, profile("eu"));
    await settle();
    await settle();
    served = [];
    client.remove(OLD, REF);
    await settle(120_000);
    expect(meshCluster()).toBeDefined();
  });

  it("says once about each profile what is wrong, and again when something else is", async () => {
    client.put(OLD, profile("eu", "http://eu.example"));
    await settle();
    await settle(120_000);
    expect(events).toEqual(["eu ServerNotUsable"]);
    client.put(OLD, profile("eu", "https://eu.example:99999"));
    await settle();
    expect(events).toEqual(["eu ServerNotUsable", "eu ServerNotUsable"]);
  });

  it("writes the other MeshClusters when one cannot be written, and tries that one again", async () => {
    let isRefused = true;
    client.before = ({ verb, name }) => {
      if (verb === "create" && name === "bad" && isRefused) throw new StatusError("Forbidden", "quota");
    };
    client.put(OLD, profile("bad"));
    client.put(OLD, profile("eu"));
    await settle();
    await settle();
    expect([meshCluster("bad"), meshCluster() !== undefined]).toEqual([undefined, true]);
    expect(events).toEqual(["bad MeshClusterNotWritten"]);
    isRefused = false;
    await settle(60_000);
    expect(meshCluster("bad")).toBeDefined();
  });

  it("never changes a MeshCluster that a person has made at the same moment", async () => {
    client.before = ({ verb, name }) => {
      if (verb === "create" && name === "eu" && meshCluster() === undefined)
        client.put(MESH_CLUSTERS, { metadata: REF, spec: { servers: ["https://own.example"] } } as never);
    };
    client.put(OLD, profile("eu"));
    await settle();
    await settle();
    expect(meshCluster()).toMatchObject({ spec: { servers: ["https://own.example"] } });
    expect(meshCluster()?.metadata.ownerReferences).toBeUndefined();
    expect(events).toEqual(["eu MeshClusterExists"]);
  });
});

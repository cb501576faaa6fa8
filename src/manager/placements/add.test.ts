import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ControllerWorld, createControllerWorld } from "../../../test/support/controller-world.ts";
import type { FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { PLACEMENT_DECISIONS, type PlacementDecision } from "../../api/placement-decision.ts";
import { MESH_CLUSTERS, VIRTUAL_APPS } from "../../api/resources.ts";
import { StatusError } from "../../kube/status.ts";
import type { App } from "../apps/app.ts";
import { createPublishedPlans, type PublishedPlans } from "../apps/published-plans.ts";
import { addPlacementsController } from "./add.ts";

const REF = { kind: "VirtualApp", namespace: "fleet", name: "shop" };
const OWNER = { apiVersion: "multicluster.x-k8s.io/v1alpha1", kind: "ClusterProfile", controller: true };

describe("the placements controller", () => {
  let world: ControllerWorld;
  let client: FakeKubeClient;
  let plans: PublishedPlans;
  let app: Partial<App> | undefined;
  let isServed: boolean;
  let events: string[];

  const settle = (ms = 3_000) => world.settle(ms);
  const setPlan = (owners: Readonly<Record<string, string>>) => {
    const clusters = Object.entries(owners).map(([name, owner]) => ({ name, owner, servers: [], drainMs: 1 }));
    plans.set(REF, { digest: JSON.stringify(owners), waits: [], rules: new Map([["", { clusters }]]) } as never);
  };
  const read = (name: string): PlacementDecision | undefined => client.read(PLACEMENT_DECISIONS, { namespace: "fleet", name });
  const clustersOf = (name: string) => read(name)?.decisions.map(({ clusterProfileRef }) => clusterProfileRef.name);
  const writes = () => client.calls.filter(({ verb }) => ["create", "patch", "delete"].includes(verb)).length;

  beforeEach(async () => {
    world = createControllerWorld();
    client = world.client;
    plans = createPublishedPlans();
    isServed = true;
    events = [];
    client.request = async () => {
      if (!isServed) throw new StatusError("NotFound", "no such page");
      return { resources: [{ name: "placementdecisions" }] };
    };
    const object = client.put(VIRTUAL_APPS, { metadata: { namespace: "fleet", name: "shop", generation: 1 } } as never);
    app = { ref: REF, object, isEnding: false, spec: { clusterOwners: () => new Map() } as never };
    for (const name of ["eu", "us"]) {
      const metadata = { namespace: "fleet", name, ownerReferences: [{ ...OWNER, name, uid: name }] };
      client.put(MESH_CLUSTERS, { metadata, spec: { servers: [] } } as unknown as MeshCluster);
    }
    client.put(MESH_CLUSTERS, { metadata: { namespace: "fleet", name: "own" }, spec: { servers: [] } } as never);
    const controller = addPlacementsController({
      ...world.base,
      plans,
      sources: [{ resource: VIRTUAL_APPS, appNameOf: ({ metadata }: { metadata: { name?: string } }) => metadata.name } as never],
      apps: { get: () => app as App | undefined, list: () => (app === undefined ? [] : [app as App]) } as never,
      events: { event: (_, __, reason) => void events.push(reason) },
    });
    await world.start(controller);
    await settle();
  });
  afterEach(() => world.stop());

  it("publishes who owns the clusters with a ClusterProfile, follows moves, and writes nothing without a change", async () => {
    setPlan({ eu: "blue", us: "", own: "" });
    await settle();
    expect([clustersOf("shop.blue-0"), clustersOf("shop.default-0")]).toEqual([["eu"], ["us"]]);
    setPlan({ eu: "blue", us: "blue", own: "" });
    await settle();
    expect([clustersOf("shop.blue-0"), clustersOf("shop.default-0")]).toEqual([["eu", "us"], undefined]);
    const before = writes();
    await settle(120_000);
    expect(writes()).toBe(before);
  });

  it("puts an edit right, and writes a deleted one again", async () => {
    setPlan({ eu: "blue" });
    await settle();
    client.put(PLACEMENT_DECISIONS, { ...(read("shop.blue-0") as PlacementDecision), decisions: [] });
    await settle();
    expect(clustersOf("shop.blue-0")).toEqual(["eu"]);
    client.remove(PLACEMENT_DECISIONS, { namespace: "fleet", name: "shop.blue-0" });
    await settle();
    expect(clustersOf("shop.blue-0")).toEqual(["eu"]);
  });

  it.each([
    ["has no rule about clusters any more", () => ({ ...app, spec: {} as never })],
    ["is switched off", () => ({ ...app, isEnding: true })],
    ["is gone", () => undefined],
  ])("deletes them when the app %s", async (_, next) => {
    setPlan({ eu: "blue" });
    await settle();
    app = next();
    plans.forget(REF);
    await settle();
    expect(read("shop.blue-0")).toBeUndefined();
  });

  it("keeps them while the app has no plan yet, as at a new leader", async () => {
    setPlan({ eu: "blue" });
    await settle();
    plans.forget(REF);
    await settle(60_000);
    expect(clustersOf("shop.blue-0")).toEqual(["eu"]);
  });

  it("never changes another program's object, and an Event says once that the name is taken", async () => {
    client.before = ({ verb, resource }) => {
      if (verb === "create" && resource === "placementdecisions") throw new StatusError("AlreadyExists", "there is one");
    };
    setPlan({ eu: "blue" });
    await settle(120_000);
    expect([events, read("shop.blue-0")]).toEqual([["PlacementNotPublished"], undefined]);
  });

  it("lists nothing while the kind is absent, and publishes when it arrives", async () => {
    isServed = false;
    await settle(60_000);
    setPlan({ eu: "blue" });
    await settle();
    expect(read("shop.blue-0")).toBeUndefined();
    isServed = true;
    await settle(31_000);
    await settle();
    expect(clustersOf("shop.blue-0")).toEqual(["eu"]);
  });
});

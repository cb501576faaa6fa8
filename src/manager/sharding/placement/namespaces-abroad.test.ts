import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { fleetCluster } from "../../../../test/support/mesh-cluster.ts";
import { table } from "../../../../test/support/route-table.ts";
import { sampleShardingRoot } from "../../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { Request } from "../../../runtime/reconciler.ts";
import { createStore, type WritableStore } from "../../../runtime/store.ts";
import { acceptClusters } from "../../apps/accept-clusters.ts";
import type { PublishedPlan } from "../../apps/published-plans.ts";
import { createKnownDecisions } from "../../decisions/known-decisions.ts";
import { createNamespacesAbroad } from "./namespaces-abroad.ts";

const APP = { namespace: "fleet", name: "shop" };
const MINUTE = 60_000;

function setUp() {
  const clock = createFakeClock();
  const stores = new Map<string, WritableStore<KubeObject>>();
  const listeners: ((cluster: Request) => void)[] = [];
  const world = { hasSynced: true, plan: undefined as PublishedPlan["plan"] | undefined };
  const terminate = { kubeconfigSecret: "read" };
  const inside = (name: string, region: string, spec: object = { interception: "Terminate", terminate }) =>
    fleetCluster(name, { servers: [`https://${name}.example`], ...spec }, { labels: { region } });
  let clusters = [inside("eu-1", "eu"), inside("eu-2", "eu"), inside("us-1", "us"), inside("eu-tunnel", "eu", {})];
  const abroad = createNamespacesAbroad({
    clock,
    clusters: {
      of: () => acceptClusters(clusters),
      decisions: createKnownDecisions(),
      get hasSynced() {
        return world.hasSynced;
      },
    },
    watched: {
      storeOf: ({ name }) => stores.get(name),
      onNamespaces: (listener) => {
        listeners.push(listener);
        return () => undefined;
      },
    },
    plans: { get: () => world.plan && { plan: world.plan, version: 1 } },
  });
  const root = { clusterSelector: { matchLabels: { region: "eu" } }, clustersBy: "Namespace" };
  const config = (fields: object = {}) =>
    ({ ...sampleShardingRoot({ ...root, ...fields }), metadata: APP }) as unknown as ShardingConfig;
  return {
    clock,
    world,
    of: (fields: object = {}) => abroad(config(fields), APP),
    know(cluster: string, ...names: readonly string[]) {
      const store = createStore<KubeObject>((error) => {
        throw error;
      });
      store.replace(names.map((name) => ({ metadata: { name, uid: name, resourceVersion: "1" } })));
      stores.set(cluster, store);
      for (const listener of listeners) listener({ namespace: "fleet", name: cluster });
    },
    lose: (cluster: string) => stores.delete(cluster),
    divide(...names: readonly string[]) {
      clusters = names.map((name) => inside(name, "eu"));
    },
    plan(clusterTables: Readonly<Record<string, readonly string[]>>) {
      const tables = Object.entries(clusterTables).map(
        ([name, names]) => [name, table([], Object.fromEntries(names.map((each) => [each, []])))] as const,
      );
      world.plan = {
        desired: table([], {}),
        subsets: [],
        rules: new Map(),
        digest: "",
        waits: [],
        clusterTables: new Map(tables),
      };
    },
  };
}

describe("the namespaces of the clusters that a root divides", () => {
  it("are those of the selected clusters with Terminate, as the manager watches them", () => {
    const { know, of } = setUp();
    know("eu-1", "a", "b");
    know("eu-2", "a");
    know("us-1", "z");
    const found = of();
    expect(found).toEqual({
      known: [
        { cluster: "eu-1", names: ["a", "b"] },
        { cluster: "eu-2", names: ["a"] },
      ],
      isComplete: true,
    });
    expect(of().known[0]).toBe(found.known[0]);
    know("eu-2", "a", "c");
    expect(of().known[1]?.names).toEqual(["a", "c"]);
  });

  it("are none with clustersBy Cluster", () => {
    const { know, of } = setUp();
    know("eu-1", "a");
    expect(of({ clustersBy: "Cluster" })).toEqual({ known: [], isComplete: true });
  });

  it("are those of the last plan for a cluster that the manager cannot watch", () => {
    const { know, plan, lose, of } = setUp();
    know("eu-1", "a");
    plan({ "eu-1": ["a"], "eu-2": ["b", "c"] });
    expect(of()).toMatchObject({ known: [{ names: ["a"] }, { cluster: "eu-2", names: ["b", "c"] }], isComplete: true });
    lose("eu-1");
    expect(of()).toMatchObject({ known: [{ cluster: "eu-1", names: ["a"] }, {}], isComplete: true });
    expect(of().known[1]).toBe(of().known[1]);
  });

  it("are awaited for a minute if nobody knows those of a cluster, and are incomplete for longer", async () => {
    const { clock, know, lose, of } = setUp();
    know("eu-1", "a");
    const untilMs = clock.now() + MINUTE;
    expect(of()).toEqual({ known: [{ cluster: "eu-1", names: ["a"] }], isComplete: false, awaitedUntilMs: untilMs });
    await clock.advance(2 * MINUTE);
    expect(of()).toMatchObject({ isComplete: false, awaitedUntilMs: untilMs });
    know("eu-2", "b");
    expect(of().isComplete).toBe(true);
    await clock.advance(MINUTE);
    lose("eu-2");
    expect(of().awaitedUntilMs).toBe(clock.now() + MINUTE);
  });

  it("are awaited for a minute in all, however often somebody makes clusters that cannot be read, and deletes them", async () => {
    const { clock, divide, know, of } = setUp();
    know("eu-1", "a");
    const untilMs = clock.now() + MINUTE;
    for (let at = 0; at < 8; at++) {
      divide("eu-1", `made-${at}`);
      expect(of()).toMatchObject({ isComplete: false, awaitedUntilMs: untilMs });
      await clock.advance(MINUTE / 4);
      divide("eu-1");
      expect(of()).toMatchObject({ isComplete: true });
      await clock.advance(MINUTE / 4);
    }
  });

  it("are not known before the MeshClusters and the PlacementDecisions are listed", () => {
    const { world, know, of } = setUp();
    know("eu-1", "a");
    know("eu-2", "a");
    expect(of({ clustersFrom: { placementDecision: "key" } })).toMatchObject({ known: [], isComplete: false });
    world.hasSynced = false;
    expect(of()).toMatchObject({ known: [], isComplete: false });
  });
});

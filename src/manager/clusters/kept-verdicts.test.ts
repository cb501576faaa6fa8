import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { ClusterTrouble, ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import { acceptClusters } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { createPublishedPlans, type OwnershipPlan } from "../apps/published-plans.ts";
import type { NamespacesState } from "../cluster-namespaces/namespaces-state.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createClustersReconciler } from "./reconciler.ts";

const APP = { kind: "VirtualApp", namespace: "fleet", name: "app" };
const NAMES = Array.from({ length: 50 }, (_, at) => `c-${at}`);
const LISTED: NamespacesState = { reason: "Listed", message: "" };

/** The first of the clusters divides its namespaces. */
function setup() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const upstream = { interception: "Terminate", terminate: { kubeconfigSecret: "s" } };
  for (const [at, name] of NAMES.entries())
    client.put(MESH_CLUSTERS, fleetCluster(name, { servers: [`https://${name}.example`], ...(at === 0 && upstream) }));
  const objects = () => NAMES.flatMap((name) => client.read(MESH_CLUSTERS, { namespace: "fleet", name }) ?? []);
  let owner = "blue";
  return {
    clock,
    objects,
    moveTo(subset: string) {
      owner = subset;
    },
    patches: () => client.calls.filter(({ verb }) => verb === "patch").length,
    conditions: (name: string) =>
      client
        .read<MeshCluster>(MESH_CLUSTERS, { namespace: "fleet", name })
        ?.status?.conditions?.map(({ type, status }) => `${type} ${status}`),
    /** A manager that has just begun to lead. */
    lead() {
      const plans = createPublishedPlans();
      let state = LISTED;
      const { reconcile } = createClustersReconciler({
        client,
        store: { list: objects },
        apps: { list: () => [{ ref: APP, spec: { clusterOwners: () => new Map() } } as unknown as App] },
        plans,
        clusters: { of: () => acceptClusters(objects()), decisions: createKnownDecisions() },
        watched: { stateOf: () => state, endsOf: () => (state === LISTED ? [{ of: "KubeconfigToken", endsMs: 1e14 }] : []) },
        events: { event: () => undefined },
        clock,
      });
      return async (waits: readonly Partial<ClusterWait>[], clusterTroubles: readonly ClusterTrouble[] = [], listed = LISTED) => {
        state = listed;
        const routes = acceptClusters(objects()).accepted.map((each) => ({ ...each, owner }));
        const clusterWaits = waits.map((wait) => ({ podName: "p", subset: undefined, clusters: NAMES, ...wait }));
        const rules = new Map([[owner, { clusters: routes }]]);
        plans.set(APP, { digest: owner, waits: [], clusterWaits, clusterTroubles, rules } as unknown as OwnershipPlan);
        return reconcile({ namespace: "", name: "fleet" }, new AbortController().signal);
      };
    },
  };
}

describe("after a failover of the manager, while pods have not reported and namespaces are not listed", () => {
  const notYet: NamespacesState = { reason: "NotListedYet", message: "not yet" };
  const unreachable = [{ podName: "p", cluster: "c-1", reason: "ECONNREFUSED" }];

  it("no status is written, also of clusters that nobody can reach or that wait for a pod", async () => {
    const { lead, patches, conditions } = setup();
    const holds: Partial<ClusterWait> = { cause: "holds", clusters: ["c-2"] };
    await lead()([holds], unreachable);
    const before = patches();
    expect([conditions("c-1"), conditions("c-2")]).toEqual([
      expect.arrayContaining(["Ready True", "Reachable False"]),
      expect.arrayContaining(["Ready False", "Reachable True"]),
    ]);
    const next = lead();
    await next([{ cause: "unreported" }, { cause: "just-listed", podName: "" }], [], notYet);
    await next([{ cause: "just-listed", podName: "" }, holds], unreachable, notYet);
    await next([holds], unreachable);
    expect(patches() - before).toBe(0);
  });

  it("what has changed is written: an owner, a pod that holds a cluster, one that cannot reach it", async () => {
    const { lead, patches, conditions, moveTo } = setup();
    await lead()([]);
    const before = patches();
    const next = lead();
    const unreported: Partial<ClusterWait> = { cause: "unreported" };
    await next([unreported, { cause: "holds", clusters: ["c-2"] }], unreachable);
    expect([patches() - before, conditions("c-1"), conditions("c-2")]).toEqual([
      2,
      expect.arrayContaining(["Ready True", "Reachable False"]),
      expect.arrayContaining(["Ready False", "Enforced False"]),
    ]);
    moveTo("green");
    await next([unreported]);
    expect(conditions("c-3")).toContain("Ready False");
  });

  it("it is written after a minute, and a manager that waits for removed pods alone need not say so", async () => {
    const { lead, patches, conditions, clock } = setup();
    await lead()([]);
    const before = patches();
    const next = lead();
    expect(await next([{ cause: "unreported" }])).toEqual({ requeueAfterMs: 60_000 });
    await clock.advance(59_000);
    expect(await next([{ cause: "unreported" }])).toEqual({ requeueAfterMs: 1_000 });
    expect(patches() - before).toBe(0);
    await clock.advance(1_000);
    expect(await next([{ cause: "unreported" }])).not.toEqual({ requeueAfterMs: expect.toSatisfy((ms) => ms <= 60_000) });
    expect([patches() - before, conditions("c-3")]).toEqual([NAMES.length, expect.arrayContaining(["Ready False"])]);
  });
});

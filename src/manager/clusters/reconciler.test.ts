import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import { table } from "../../../test/support/route-table.ts";
import { threadCpuMs } from "../../../test/support/thread-cpu.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import type { RouteRule } from "../../mesh/ownership/table.ts";
import { acceptClusters } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { clusterRoutes } from "../apps/cluster-routes.ts";
import { createPublishedPlans, type OwnershipPlan } from "../apps/published-plans.ts";
import type { CredentialEnd } from "../cluster-namespaces/credential-ends.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createClustersReconciler } from "./reconciler.ts";

const EU: MeshCluster = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "MeshCluster",
  metadata: { namespace: "fleet", name: "eu", uid: "1", resourceVersion: "1" },
  spec: { servers: ["https://eu.example"] },
};

/** A client that has the cluster eu, and adds the body of each patch. */
const clientNoting = (patches: unknown[]) =>
  ({
    get: async () => EU,
    patch: async (_resource: unknown, _of: unknown, { body }: { body: unknown }) => patches.push(body) && EU,
  }) as never;

it("writes no status before each app that divides clusters has a plan: a new leader would say that nobody owns them", async () => {
  const ref = { kind: "VirtualApp", namespace: "fleet", name: "app" };
  const patches: unknown[] = [];
  const plans = createPublishedPlans();
  const { reconcile } = createClustersReconciler({
    client: clientNoting(patches),
    store: { list: () => [EU] },
    apps: { list: () => [{ ref, spec: { clusterOwners: () => "blue" } } as unknown as App] },
    plans,
    clusters: { of: () => acceptClusters([EU]), decisions: createKnownDecisions() },
    watched: { stateOf: () => ({ reason: "Listed", message: "" }), endsOf: () => [] },
    events: { event: () => undefined },
    clock: { now: () => 0, monotonicMs: () => 0 },
  });
  const request = { namespace: "", name: "fleet" };
  const signal = new AbortController().signal;
  expect(await reconcile(request, signal)).toEqual({ requeueAfterMs: 5_000 });
  expect(patches).toEqual([]);
  const eu = { name: "eu", servers: ["eu.example:443"], drainMs: 60_000, owner: "blue" };
  plans.set(ref, {
    digest: "d",
    waits: [],
    clusterWaits: [],
    rules: new Map([["blue", { clusters: [eu] }]]),
  } as unknown as OwnershipPlan);
  expect(await reconcile(request, signal)).toEqual({});
  expect(patches).toMatchObject([{ status: { owners: [{ app: "app", subset: "blue" }] } }]);
});

it("writes the statuses after a minute, though an app never gets a plan, as one whose StatefulSet does not exist", async () => {
  const app = (name: string) => ({
    ref: { kind: "VirtualApp", namespace: "fleet", name },
    spec: { clusterOwners: () => "blue" } as never,
  });
  const [good, stuck] = [app("good"), app("stuck")];
  const patches: unknown[] = [];
  const plans = createPublishedPlans();
  let nowMs = 0;
  const { reconcile } = createClustersReconciler({
    client: clientNoting(patches),
    store: { list: () => [EU] },
    apps: { list: () => [good, stuck] as unknown as App[] },
    plans,
    clusters: { of: () => acceptClusters([EU]), decisions: createKnownDecisions() },
    watched: { stateOf: () => ({ reason: "Listed", message: "" }), endsOf: () => [] },
    events: { event: () => undefined },
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
  });
  const eu = { name: "eu", servers: ["eu.example:443"], drainMs: 60_000, owner: "blue" };
  plans.set(good.ref, {
    digest: "d",
    waits: [],
    clusterWaits: [],
    rules: new Map([["blue", { clusters: [eu] }]]),
  } as unknown as OwnershipPlan);
  const request = { namespace: "", name: "fleet" };
  const { signal } = new AbortController();
  expect(await reconcile(request, signal)).toEqual({ requeueAfterMs: 5_000 });
  expect(patches).toEqual([]);
  nowMs = 60_000;
  expect(await reconcile(request, signal)).toEqual({});
  expect(patches).toMatchObject([{ status: { owners: [{ app: "good", subset: "blue" }] } }]);
});

it("costs the manager's thread little when 2,000 pods have not reported about 500 clusters", async () => {
  const ref = { kind: "VirtualApp", namespace: "fleet", name: "app" };
  const objects = Array.from({ length: 500 }, (_, at) =>
    fleetCluster(`eu-west-1-${at + 1_000}`, { servers: [`https://c-${at}.example`] }),
  );
  const plans = createPublishedPlans();
  const { reconcile } = createClustersReconciler({
    client: { get: async () => EU, patch: async () => EU } as never,
    store: { list: () => objects },
    apps: { list: () => [{ ref, spec: { clusterOwners: () => "blue" } } as unknown as App] },
    plans,
    clusters: { of: () => acceptClusters(objects), decisions: createKnownDecisions() },
    watched: { stateOf: () => ({ reason: "Listed", message: "" }), endsOf: () => [] },
    events: { event: () => undefined },
    clock: { now: () => 0, monotonicMs: () => 0 },
  });
  const clusters = objects.map(({ metadata }) => ({ name: metadata.name ?? "", servers: [], drainMs: 0, owner: "blue" }));
  const clusterWaits = Array.from({ length: 2_000 }, (_, pod) => ({
    podName: `app-${pod}`,
    subset: undefined,
    cause: "unreported",
    clusters: clusters.map(({ name }) => name),
  }));
  const rules = new Map([["blue", { clusters }]]);
  plans.set(ref, { digest: "d", waits: [], clusterWaits, rules } as unknown as OwnershipPlan);
  const startMs = threadCpuMs();
  await reconcile({ namespace: "", name: "fleet" }, new AbortController().signal);
  expect(threadCpuMs() - startMs).toBeLessThan(1_200);
});

it("says of a cluster whose namespaces are divided what the manager knows of them, and what each subset owns", async () => {
  const spec = { servers: ["https://eu.example"], interception: "Terminate", terminate: { kubeconfigSecret: "eu" } } as const;
  const ref = { kind: "VirtualApp", namespace: "fleet", name: "app" };
  const patches: { status: MeshCluster["status"] }[] = [];
  const plans = createPublishedPlans();
  const rule: RouteRule = { kind: "subset", subset: "blue", resources: [], origin: "o" };
  const inside = table([rule], { a: [0], b: [], c: [] });
  const [route] = clusterRoutes(acceptClusters([{ ...EU, spec }]).accepted, () => new Map([["eu", ""]]), new Map());
  const rules = new Map(["", "blue"].map((subset) => [subset, { clusters: [{ ...route, isFenced: true }] }]));
  plans.set(ref, { digest: "d", waits: [], rules, clusterTables: new Map([["eu", inside]]) } as unknown as OwnershipPlan);
  const { reconcile } = createClustersReconciler({
    client: { patch: async (_resource: unknown, _of: unknown, { body }: { body: never }) => patches.push(body) && EU } as never,
    store: { list: () => [{ ...EU, spec }] },
    apps: { list: () => [{ ref, spec: { clusterOwners: () => new Map() } } as unknown as App] },
    plans,
    clusters: { of: () => acceptClusters([{ ...EU, spec }]), decisions: createKnownDecisions() },
    watched: { stateOf: ({ namespace, name }) => ({ reason: "Forbidden", message: `${namespace}/${name}` }), endsOf: () => [] },
    events: { event: () => undefined },
    clock: { now: () => 0, monotonicMs: () => 0 },
  });
  await reconcile({ namespace: "", name: "fleet" }, new AbortController().signal);
  const owned = [
    { subset: "default", count: 2 },
    { subset: "blue", count: 1 },
  ];
  expect(patches[0]?.status?.namespaces).toEqual([{ app: "app", total: 3, owned }]);
  expect(patches[0]?.status).not.toHaveProperty("owners");
  expect(patches[0]?.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
    "Ready False Forbidden",
    "Identified True Unique",
    "NamespacesWatched False Forbidden",
    "Enforced True OneOwner",
    "Decided True ByRules",
    "CredentialsValid Unknown NotKnown",
    "Reachable True NoFailures",
  ]);
});

it("looks again when a token of a cluster ends, and tells each of the two times once, also after a failover", async () => {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const spec = { servers: ["https://eu.example"], interception: "Terminate", terminate: { kubeconfigSecret: "eu" } } as const;
  client.put(MESH_CLUSTERS, { ...EU, spec });
  const list = () =>
    [client.read<MeshCluster>(MESH_CLUSTERS, { namespace: "fleet", name: "eu" })].filter((each) => each !== undefined);
  let ends: readonly CredentialEnd[] = [{ of: "KubeconfigToken", endsMs: clock.now() + 14 * 86_400_000 + 60_000 }];
  const events: string[] = [];
  const lead = () =>
    createClustersReconciler({
      client,
      store: { list },
      apps: { list: () => [] },
      plans: createPublishedPlans(),
      clusters: { of: () => acceptClusters(list()), decisions: createKnownDecisions() },
      watched: { stateOf: () => ({ reason: "Listed", message: "" }), endsOf: () => ends },
      events: { event: (_object, type, reason) => void events.push(`${type} ${reason}`) },
      clock,
    });
  const run = (by = lead()) => by.reconcile({ namespace: "", name: "fleet" }, new AbortController().signal);
  const patches = () => client.calls.filter(({ verb }) => verb === "patch").length;
  expect(await run()).toEqual({ requeueAfterMs: 60_000 });
  expect(list()[0]?.status).toMatchObject({ earliestExpiry: { of: "KubeconfigToken", time: "2026-01-15T00:01:00Z" } });
  expect(events).toEqual([]);
  await clock.advance(60_000);
  expect(await run()).toEqual({ requeueAfterMs: 6 * 3_600_000 });
  await run();
  await clock.advance(14 * 86_400_000);
  expect(await run()).toEqual({});
  await run();
  expect([events, patches()]).toEqual([["Warning CredentialsExpiringSoon", "Warning CredentialsExpired"], 3]);
  ends = [];
  await run();
  expect(list()[0]?.status).not.toHaveProperty("earliestExpiry");
  expect(events).toHaveLength(2);
});

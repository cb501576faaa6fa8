import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CLUSTER_SUBSETS, type ClusterPod, createClusterPods, podEvents, routesOf } from "../../../test/support/cluster-pods.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { MAX_CLUSTER_TABLES } from "../contract/cluster-tables.ts";
import { type ClusterRoute, mayReach } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../ownership/table.ts";
import { viewOf } from "../ownership/view-of.ts";
import type { Claim } from "./claims.ts";
import { planAbroad } from "./plan-abroad.ts";
import { planClusterTables } from "./plan-cluster-tables.ts";

const NAMESPACES = ["n1", "n2"];
type Route = Pick<Snapshot, "clusters" | "clusterTables">;

/** A cluster whose namespaces have these owners. */
const divided = (name: string, servers = [`${name}:443`]): ClusterRoute => ({
  name,
  servers,
  drainMs: 60_000,
  owner: DEFAULT_SUBSET,
  upstream: { url: `https://${servers[0]}` },
});
/** One of several clusters behind a gateway. */
const gateway = (name: string, path: string): ClusterRoute => ({
  ...divided(name, ["gw:443"]),
  upstream: { url: `https://gw${path}`, paths: [`gw:443${path}`] },
});
const tableOf = (...owners: string[]): RouteTable =>
  table(
    [subset("blue"), subset("green")],
    Object.fromEntries(NAMESPACES.map((name, at) => [name, owners[at] === "blue" ? [0] : owners[at] === "green" ? [1] : []])),
  );
const whole = (name: string, owner: string): ClusterRoute => ({ name, servers: [`${name}:443`], drainMs: 60_000, owner });

interface Spec {
  readonly owned: readonly ClusterRoute[];
  readonly tables: ReadonlyMap<string, RouteTable>;
}

function plan(
  { owned, tables }: Spec,
  claims: readonly Claim[],
  more: { isPaused?: boolean; isComplete?: boolean; snapshots?: readonly Snapshot[] } = {},
) {
  const { isPaused = false, isComplete = true, snapshots = [] } = more;
  return planAbroad({
    owned,
    subsets: CLUSTER_SUBSETS,
    isPaused,
    isComplete,
    claims,
    bySpec: tables,
    snapshots: () => snapshots,
  });
}

function routeOf(spec: Spec, claims: readonly Claim[], of: string, snapshots: readonly Snapshot[] = []): Route {
  const { clustersOf, tablesOf } = plan(spec, claims, { snapshots });
  return { clusters: clustersOf(of), clusterTables: tablesOf(of) };
}

function claim(podName: string, of: string, route: Route | undefined, enforced = true): Claim {
  const { clusters, clusterTables } = route ?? {};
  return { kind: "table", podName, subset: of, table: tableOf(), enforced, clusters, clusterTables };
}

/** The namespaces inside the cluster to which a pod with these routes may write through its proxy. */
function ownedIn(name: string, of: string, { clusterTables }: Route): string[] {
  const inside = clusterTables?.get(name);
  if (inside === undefined) return [];
  const view = viewOf(snapshot(inside, { subset: of }), "", "configmaps");
  return NAMESPACES.filter((namespace) => view.ownershipOf(namespace) === "own");
}

const EU: Spec = { owned: [divided("eu")], tables: new Map([["eu", tableOf("blue", "green")]]) };

describe("a namespace inside another cluster goes to its owner", () => {
  const ownedBy = (of: string, spec: Spec, claims: readonly Claim[]) => ownedIn("eu", of, routeOf(spec, claims, of));

  it("when no pod of another subset may write there", () => {
    expect(ownedBy("blue", EU, [])).toEqual(["n1"]);
    expect(ownedBy("green", EU, [claim("b", "blue", routeOf(EU, [], "blue"))])).toEqual(["n2"]);
  });

  it("not while a pod of another subset owns it, reaches the cluster's server by itself, or enforces nothing", () => {
    const before: Spec = { ...EU, tables: new Map([["eu", tableOf("green", "green")]]) };
    const open: Route = { clusters: [] };
    const tunnel: Route = { clusters: [whole("eu", "green")] };
    for (const route of [routeOf(before, [], "green"), open, tunnel])
      expect(ownedBy("blue", EU, [claim("g", "green", route)])).toEqual([]);
    expect(ownedBy("blue", EU, [{ kind: "everything", podName: "x", subset: undefined }])).toEqual([]);
  });

  it("and what does not move stays with its owner when a pod comes that has not reported", () => {
    const claims: Claim[] = [
      claim("b", "blue", routeOf(EU, [], "blue")),
      { kind: "everything", podName: "x", subset: undefined },
    ];
    expect(ownedBy("blue", EU, claims)).toEqual(["n1"]);
    expect(ownedBy("green", EU, claims)).toEqual([]);
    expect(plan(EU, claims).waits).toEqual([{ podName: "x", subset: undefined, cause: "unreported", clusters: ["eu"] }]);
  });

  it("not while the mesh does not see the connections of a pod, which the wait names, also of the owner's pods", () => {
    const route = routeOf(EU, [], "blue");
    const unseen = (podName: string, of: string): Claim => ({ ...claim(podName, of, route), hidesObjectsOnly: true }) as Claim;
    expect(ownedBy("blue", EU, [claim("b", "blue", route), unseen("g", "green")])).toEqual([]);
    expect(plan(EU, [unseen("b", "blue")]).waits).toEqual([
      { podName: "b", subset: "blue", cause: "not-enforced", clusters: ["eu"] },
    ]);
  });

  it("also if the cluster gets another name, since its server tells", () => {
    const renamed: Spec = { owned: [divided("eu-1", ["eu:443"])], tables: new Map([["eu-1", tableOf("green", "green")]]) };
    const claims = [claim("b", "blue", routeOf(EU, [], "blue"))];
    expect(ownedIn("eu-1", "green", routeOf(renamed, claims, "green"))).toEqual(["n2"]);
  });

  it("also if the cluster gets another path behind its gateway, since its name tells", () => {
    const before: Spec = { owned: [gateway("a", "/a")], tables: new Map([["a", tableOf("blue", "blue")]]) };
    const after: Spec = { owned: [gateway("a", "/new")], tables: new Map([["a", tableOf("green", "blue")]]) };
    const claims = [claim("b", "blue", routeOf(before, [], "blue"))];
    expect([
      ownedIn("a", "green", routeOf(after, claims, "green")),
      ownedIn("a", "blue", routeOf(after, claims, "blue")),
    ]).toEqual([[], ["n2"]]);
  });

  it("also of a cluster that was known as two, when no pod has the routes of both any more", () => {
    const [a, b] = [gateway("a", "/a"), gateway("b", "/b")];
    const tables = new Map(Object.entries({ a: tableOf("blue", "blue"), b: tableOf("green", "green") }));
    const two: Spec = { owned: [a, b], tables };
    const both = { ...a, upstream: { url: "https://gw/a", paths: ["gw:443/a", "gw:443/b"] } };
    const one: Spec = { owned: [both], tables: new Map([["a", tableOf("green", "blue")]]) };
    const claims = [claim("b", "blue", routeOf(two, [], "blue")), claim("g", "green", routeOf(two, [], "green"))];
    for (const of of ["blue", "green"]) expect(ownedIn("a", of, routeOf(one, claims, of))).toEqual([]);
  });
});

describe("the routes of all pods", () => {
  it("let no pod connect to the cluster's servers by itself", () => {
    for (const of of CLUSTER_SUBSETS) {
      const { clusters } = routeOf(EU, [], of);
      expect(mayReach({ subset: of, clusters }, "eu:443")).toBe(false);
    }
  });

  it("keep the newest table while the namespaces of the cluster are not known, and during a pause", () => {
    const moving = [claim("g", "green", { clusters: [whole("eu", "green")] })]; // so the newest table has fences
    const last = snapshot(tableOf(), { version: 7, subset: "blue", ...routeOf(EU, moving, "blue") });
    const unknown: Spec = { owned: EU.owned, tables: new Map() };
    expect(ownedIn("eu", "blue", routeOf(unknown, [], "blue", [last]))).toEqual(["n1"]);
    const edited: Spec = { ...EU, tables: new Map([["eu", tableOf("green", "blue")]]) };
    const paused = plan(edited, [], { isPaused: true, snapshots: [last] });
    expect(ownedIn("eu", "green", { clusterTables: paused.tablesOf("green") })).toEqual(["n2"]);
  });

  it("have no table for a cluster of which nobody knows a namespace, so that it is closed", () => {
    const route = routeOf({ owned: EU.owned, tables: new Map() }, [], "blue");
    expect(route.clusterTables).toBeUndefined();
    expect(mayReach({ subset: "blue", clusters: route.clusters }, "eu:443")).toBe(false);
  });
});

it("a cluster whose table only the pods keep loses it if there would be more tables than a proxy takes", () => {
  const cluster = (name: string): ClusterRoute => ({
    name,
    servers: [`${name}.example:443`],
    drainMs: 1,
    owner: "",
    upstream: { url: `https://${name}.example` },
  });
  const kept = cluster("a-kept");
  const names = Array.from({ length: MAX_CLUSTER_TABLES }, (_, at) => `c-${at}`);
  const inside = table([], { "ns-1": [] });
  const facts = { isPaused: false, isComplete: true, subsets: [""], keptSubsets: [""], claims: [] };
  const pods = [snapshot(table([], {}), { clusters: [kept], clusterTables: new Map([[kept.name, inside]]) })];
  const planOf = (specNames: readonly string[]) =>
    planClusterTables({
      ...facts,
      clusters: [kept, ...specNames.map(cluster)],
      bySpec: new Map(specNames.map((name) => [name, inside])),
      snapshots: pods,
    });
  expect([...(planOf(names.slice(1)).tablesOf("")?.keys() ?? [])]).toContain("a-kept");
  expect([...(planOf(names).tablesOf("")?.keys() ?? [])].sort()).toEqual(names.sort());
});

/** Two clusters behind one gateway. */
const PATHS = ["/a", "/b"];
const OWNERS = fc.tuple(fc.constantFrom(...CLUSTER_SUBSETS), fc.constantFrom(...CLUSTER_SUBSETS));
/**
 * How the spec divides the clusters: as one, by tables of which each may be missing or unknown, or by one table for both. Their names may
 * be swapped.
 */
const DIVISION = fc.oneof(
  fc.constantFrom(...CLUSTER_SUBSETS).map((owner) => ({ kind: "whole" as const, owner })),
  fc.record({
    kind: fc.constant("tables" as const),
    names: fc.constantFrom(["a", "b"], ["b", "a"], ["c", "b"]),
    owners: fc.array(fc.option(OWNERS), { minLength: 1, maxLength: 2 }),
  }),
  OWNERS.map((owners) => ({ kind: "joined" as const, owners })),
);
type Division = typeof DIVISION extends fc.Arbitrary<infer T> ? T : never;

function specOf(division: Division): Spec {
  if (division.kind === "whole") return { owned: [{ ...whole("a", division.owner), servers: ["gw:443"] }], tables: new Map() };
  if (division.kind === "joined") {
    const upstream = { url: "https://gw/a", paths: PATHS.map((path) => `gw:443${path}`) };
    return { owned: [{ ...gateway("a", "/a"), upstream }], tables: new Map([["a", tableOf(...division.owners)]]) };
  }
  const names = division.names.slice(0, division.owners.length);
  const known = division.owners.flatMap((owners, at) =>
    owners === null ? [] : [[names[at] ?? "", tableOf(...owners)] as const],
  );
  return { owned: names.map((name, at) => gateway(name, PATHS[at] ?? "")), tables: new Map(known) };
}

function createWorld() {
  let spec = specOf({ kind: "tables", names: ["a", "b"], owners: [["", ""]] });
  let version = 0;
  const pods = createClusterPods<Snapshot, Division>({
    edit(division) {
      spec = specOf(division);
    },
    claim,
    plan: (of, claims, known) => snapshot(tableOf(), { version: ++version, subset: of, ...routeOf(spec, claims, of, known) }),
  });
  return { pods, specNow: () => spec };
}

/** In the cluster at the path, through the proxy or by itself. */
const mayWrite = (pod: ClusterPod<Snapshot>, path: string, namespace: string) =>
  routesOf(pod).some(
    (route) =>
      mayReach({ subset: pod.subset, clusters: route.clusters }, "gw:443") ||
      (route.clusters ?? []).some(
        ({ name, upstream }) =>
          upstream?.paths?.includes(`gw:443${path}`) && ownedIn(name, pod.subset, route).includes(namespace),
      ),
  );

it("no namespace of a cluster has two writers, however its division changes, and each ends with its owner", () => {
  fc.assert(
    fc.property(fc.array(podEvents(DIVISION), { maxLength: 40, size: "max" }), (events) => {
      const { pods, specNow } = createWorld();
      for (const of of ["blue", "green"]) pods.start(of);
      pods.settle();
      for (const event of events) {
        pods.step(event);
        for (const path of PATHS)
          for (const namespace of NAMESPACES) {
            const writers = new Set(pods.pods.filter((pod) => mayWrite(pod, path, namespace)).map((pod) => pod.subset));
            expect(writers.size).toBeLessThanOrEqual(1);
          }
      }
      pods.settle();
      const { owned, tables } = specNow();
      for (const pod of pods.pods) {
        const [cluster] = owned;
        const mayConnect = mayReach({ subset: pod.subset, clusters: pod.enforced?.clusters }, "gw:443");
        expect(mayConnect).toBe(cluster?.upstream === undefined && cluster?.owner === pod.subset);
        for (const name of tables.keys())
          expect(ownedIn(name, pod.subset, pod.enforced ?? {})).toEqual(ownedIn(name, pod.subset, { clusterTables: tables }));
      }
    }),
    { numRuns: 300 },
  );
});

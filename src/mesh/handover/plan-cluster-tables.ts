// The handover of namespaces inside other clusters, whose requests the proxies serve: that of plan-fences.ts, once for each cluster. A
// pure function. Invariant: a subset gets a namespace there only when no pod of another subset may send writes to it, by a table or by
// a connection of its own to the cluster's servers. A pod whose proxy does not see its connections may write everything.
import { remember, rememberNames } from "../../base/remember.ts";
import { MAX_CLUSTER_TABLES } from "../contract/cluster-tables.ts";
import { type ClusterRoute, mayReach, sameClusters } from "../ownership/clusters.ts";
import { countNamespaces } from "../ownership/place-lists.ts";
import type { ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { Claim, ClaimOfTable } from "./claims.ts";
import { type PausedRoute, pauseAt, withoutFences } from "./paused.ts";
import type { ClusterWait } from "./plan-clusters.ts";
import { planFences, type Wait, withFences } from "./plan-fences.ts";
import { hasNothingYet } from "./resource-fences.ts";

export interface ClusterTablesPlan {
  /** The clusters as all pods get them: no pod may connect to their servers by itself. */
  readonly clusters: readonly ClusterRoute[];
  /** The owners, without fences. */
  readonly desired: ClusterTables;
  /** The tables of the pods of a subset. */
  tablesOf(subset: string): ClusterTables | undefined;
  readonly waits: readonly ClusterWait[];
  /** The pods that namespaces of each cluster wait for. */
  readonly waitsInside: ReadonlyMap<string, readonly Wait[]>;
}

/** The owners by the spec inside a cluster whose namespaces the manager does not read. @param inForce has the namespaces */
export type TableByNames = (cluster: ClusterRoute, inForce: RouteTable) => RouteTable | undefined;

interface TablesFacts {
  /** Those with an upstream. */
  readonly clusters: readonly ClusterRoute[];
  /** By the spec. A cluster without a table has the namespaces of the newest one that a pod has. */
  readonly bySpec: ClusterTables;
  /** Absent, or no result: such a cluster keeps that table. */
  readonly byNames?: TableByNames | undefined;
  /** All pods have reported, so a cluster without a table in force has none that a pause could keep. */
  readonly isComplete: boolean;
  /** The subsets with which a pause keeps namespaces. */
  readonly keptSubsets: readonly string[];
  /** Of the app's pods. */
  readonly snapshots: readonly Snapshot[];
}

interface ClusterTablesFacts extends TablesFacts {
  readonly isPaused: boolean;
  readonly subsets: readonly string[];
  readonly claims: readonly Claim[];
}

/** What a pause keeps inside clusters. */
export interface KeptInside {
  /** The namespaces that have another owner than the spec demands. */
  readonly kept: number;
  /** All namespaces that are known. */
  readonly total: number;
}

export const NONE_INSIDE: KeptInside = { kept: 0, total: 0 };

export function countKept({ clusters, ...facts }: TablesFacts): KeptInside {
  return clusters
    .flatMap((cluster) => pausedInside(cluster, facts) ?? [])
    .reduce((sum, { desired, kept }) => ({ kept: sum.kept + kept, total: sum.total + countNamespaces(desired) }), NONE_INSIDE);
}

export function planClusterTables({ clusters, subsets, claims, ...facts }: ClusterTablesFacts): ClusterTablesPlan {
  const tables = clusters.flatMap((cluster) => {
    const table = desiredTable(cluster, facts);
    return table === undefined ? [] : [[cluster.name, table] as const];
  });
  // A proxy refuses routes with more tables. Those of the spec come before those that the pods keep.
  const rank = ([name]: (typeof tables)[number]) => (facts.bySpec.has(name) ? 0 : 1);
  const desired = new Map(tables.sort((a, b) => rank(a) - rank(b)).slice(0, MAX_CLUSTER_TABLES));
  const waits: ClusterWait[] = [];
  const planned = new Map(
    clusters.flatMap((cluster) => {
      const table = desired.get(cluster.name);
      waits.push(...claims.filter(isUnseen).map((claim) => waitFor(claim, "not-enforced", cluster)));
      if (table === undefined) return [];
      const { claims: claimsInside, causes } = claimsOn(cluster, claims);
      const fences = planFences(table, subsets, claimsInside);
      const named = new Set<string>();
      for (const wait of fences.waits) {
        const cause = causes.get(wait.podName) ?? wait.cause;
        const key = `${wait.podName} ${cause}`;
        // A pod may be waited for twice: for namespaces, and for resources that move as a whole.
        if (cause !== "not-enforced" && !named.has(key)) waits.push(waitFor(wait, cause, cluster));
        named.add(key);
      }
      return [[cluster.name, { table, fences }] as const];
    }),
  );
  return {
    clusters: clusters.map((cluster) => ({ ...cluster, isFenced: true })),
    desired,
    tablesOf: (subset) =>
      planned.size === 0
        ? undefined
        : new Map([...planned].map(([name, { table, fences }]) => [name, withFences(table, fences, subset)])),
    waits,
    waitsInside: new Map([...planned].map(([name, { fences }]) => [name, fences.waits])),
  };
}

function desiredTable(
  cluster: ClusterRoute,
  { isPaused, ...facts }: Omit<TablesFacts, "clusters"> & Pick<ClusterTablesFacts, "isPaused">,
): RouteTable | undefined {
  if (isPaused) return pausedInside(cluster, facts)?.desired;
  return specTable(cluster, facts) ?? newestTable(cluster, facts.snapshots);
}

function specTable(
  cluster: ClusterRoute,
  { bySpec, byNames, snapshots }: Pick<TablesFacts, "bySpec" | "byNames" | "snapshots">,
): RouteTable | undefined {
  const known = bySpec.get(cluster.name);
  if (known !== undefined || byNames === undefined) return known;
  const inForce = newestTable(cluster, snapshots);
  return inForce && byNames(cluster, inForce);
}

/** The cluster while each namespace stays with its owner; undefined if nobody knows a namespace of it. */
function pausedInside(
  cluster: ClusterRoute,
  { keptSubsets, isComplete, ...facts }: Omit<TablesFacts, "clusters">,
): PausedRoute | undefined {
  const spec = specTable(cluster, facts);
  const inForce = newestTable(cluster, facts.snapshots);
  // A table of the spec would be the newest one from then on, and the owners that a pod reports later would not count.
  if (spec === undefined || (inForce === undefined && !isComplete)) return inForce && { desired: inForce, kept: 0 };
  return inForce === undefined ? pauseAt(spec, inForce, keptSubsets) : pausedTable(spec)(JSON.stringify(keptSubsets))(inForce);
}

/** There may be 32 clusters with thousands of namespaces each, of which one changes. The result is the table in force later. */
const pausedTable = remember((spec: RouteTable) =>
  rememberNames((keptSubsets: string) => {
    const known = new WeakMap<RouteTable, PausedRoute>();
    return (inForce: RouteTable): PausedRoute => {
      const paused = known.get(inForce) ?? pauseAt(spec, inForce, JSON.parse(keptSubsets));
      known.set(inForce, paused).set(paused.desired, paused);
      return paused;
    };
  }),
);

/**
 * The owners inside the cluster by the newest routes that have them. A table that fences everything was made while pods had not
 * reported, so it may have owners that were never in force.
 */
function newestTable(cluster: ClusterRoute, snapshots: readonly Snapshot[]): RouteTable | undefined {
  const tables = snapshots.flatMap((snapshot) =>
    tablesFor(cluster, snapshot).map((table) => ({ version: snapshot.version, table })),
  );
  const granting = tables.filter(({ table }) => !hasNothingYet(table));
  const [newest] = (granting.length === 0 ? tables : granting).sort((a, b) => b.version - a.version);
  return newest && plainTable(newest.table);
}

/** One object for each table, so that what is computed from it is remembered. */
const plainTable = remember(withoutFences);

/** The tables of the cluster, which may have had other names. */
function tablesFor(cluster: ClusterRoute, view: Pick<Snapshot, "clusters" | "clusterTables">): readonly RouteTable[] {
  return sameClusters(view, cluster).flatMap(({ name }) => view.clusterTables?.get(name) ?? []);
}

/** True for a pod whose connections the mesh does not limit. */
function isUnseen(claim: Claim): boolean {
  return claim.kind === "table" && claim.hidesObjectsOnly === true;
}

/** What each pod may write in the cluster, and why it may write everything. */
function claimsOn(cluster: ClusterRoute, claims: readonly Claim[]) {
  const causes = new Map<string, ClusterWait["cause"]>();
  const reaches = ({ subset, clusters }: ClaimOfTable) =>
    clusters !== undefined && cluster.servers.some((server) => mayReach({ subset, clusters }, server));
  const tables = new Map(claims.map((claim) => [claim, claim.kind === "table" ? tablesFor(cluster, claim) : []]));
  // Routes that open the cluster are newer than each grant inside it: the app had no rule about it for a time. With several tables, the
  // cluster was known as several.
  const isOpened = claims.some(
    (claim) => isUnseen(claim) || (claim.kind === "table" && reaches(claim)) || (tables.get(claim)?.length ?? 0) > 1,
  );
  const claimsInside = claims.flatMap((claim): Claim[] => {
    if (claim.kind === "everything") return [claim];
    const { podName, subset, isGone } = claim;
    const isSeen = claim.clusters !== undefined && !isUnseen(claim);
    if (!isSeen || reaches(claim)) {
      if (isGone === undefined) causes.set(podName, isSeen ? "holds" : "not-enforced");
      return [{ kind: "everything", podName, subset, ...(isGone && { isGone }) }];
    }
    return (tables.get(claim) ?? []).map((table) => ({ ...claim, table, enforced: claim.enforced && !isOpened }));
  });
  return { claims: claimsInside, causes };
}

function waitFor(
  { podName, subset }: Pick<ClusterWait, "podName" | "subset">,
  cause: ClusterWait["cause"],
  { name }: ClusterRoute,
): ClusterWait {
  return { podName, subset, cause, clusters: [name] };
}

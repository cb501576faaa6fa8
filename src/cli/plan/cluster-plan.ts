// What an edit of an app changes in other clusters: which of them get another owner, and which of their namespaces. Pure.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { PlacementDecision } from "../../api/placement-decision.ts";
import { type App, type EditVerdict, isLive } from "../../manager/apps/app.ts";
import { type ChosenClusters, chosenClusters } from "../../manager/apps/chosen-clusters.ts";
import { type ClusterOwners, clusterRoutes } from "../../manager/apps/cluster-routes.ts";
import { pausedClusters } from "../../mesh/handover/kept-clusters.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { subsetOfDisplayName } from "../../mesh/ownership/words.ts";
import { acceptedIn } from "./edited-clusters.ts";
import { type InsideMoves, insidePlan, type KnownInside, NOTHING_INSIDE } from "./inside-plan.ts";
import { type ClusterMoves, movedClusters } from "./moved-clusters.ts";

/** What other clusters there are, before or after. */
export interface ClusterWorld {
  readonly clusters: readonly MeshCluster[];
  readonly decisions: readonly PlacementDecision[];
}

interface EditOfApp {
  readonly before: App | undefined;
  readonly after: App | undefined;
  readonly verdicts: readonly EditVerdict[];
  /** Its rules go by the labels of namespaces. */
  readonly readsLabels: boolean;
}

interface ClusterPlan extends ClusterMoves {
  readonly inside: InsideMoves;
}

/** Pods of a new app get clusters when they have a sidecar, so nothing moves by the edit. */
export function clusterPlan(
  { before, after, verdicts, readsLabels }: EditOfApp,
  old: ClusterWorld,
  next: ClusterWorld,
  known: KnownInside,
): ClusterPlan {
  if (before?.spec === undefined || after?.spec === undefined) return { moves: [], total: 0, notes: [], inside: NOTHING_INSIDE };
  const { namespace } = after.ref;
  const estimates = verdicts.flatMap(({ reroute }) => reroute?.clusterRules ?? []);
  // The shards of a root follow from its pods too. Admission estimates them from the edit.
  const [first, last] = [estimates[0]?.before ?? before.spec, estimates.at(-1)?.after ?? after.spec];
  const routesIn = (world: ClusterWorld, ownersOf: ClusterOwners | undefined) =>
    ownersOf && clusterRoutes(acceptedIn(world.clusters, namespace).accepted, ownersOf, chosenIn(world, namespace));
  // When an app ends, every pod can write to all clusters.
  const [had, wanted] = [
    routesIn(old, before.isEnding ? undefined : first.clusterOwners),
    routesIn(next, after.isEnding ? undefined : last.clusterOwners),
  ];
  const owned = before.spec.isPaused ? withShownOwners(had, old.clusters, before.ref) : had;
  if (after.spec.isPaused && isLive(after)) {
    const kept = pausedClusters(wanted, [{ version: 1, clusters: owned }], after.spec.subsets, true) ?? [];
    return { ...movedClusters(owned ?? [], kept), inside: NOTHING_INSIDE };
  }
  const inside = insidePlan(
    { app: before, rules: first, routes: owned ?? [], clusters: old.clusters, chosen: chosenIn(old, namespace) },
    { app: after, rules: last, routes: wanted ?? [], clusters: next.clusters, chosen: chosenIn(next, namespace) },
    known,
    readsLabels,
  );
  return { ...movedClusters(owned ?? [], wanted ?? []), inside };
}

/** The owners that the manager has written into the status: a pause keeps them, whatever the spec says. */
function withShownOwners(
  routes: readonly ClusterRoute[] | undefined,
  clusters: readonly MeshCluster[],
  { namespace, name }: App["ref"],
): readonly ClusterRoute[] | undefined {
  return routes?.map((route) => {
    const object = clusters.find(({ metadata }) => metadata.namespace === namespace && metadata.name === route.name);
    const shown = object?.status?.owners?.find(({ app }) => app === name)?.subset;
    return shown === undefined ? route : { ...route, owner: subsetOfDisplayName(shown) };
  });
}

export function chosenIn({ decisions }: Pick<ClusterWorld, "decisions">, namespace: string): ChosenClusters {
  return chosenClusters(decisions.filter(({ metadata }) => metadata.namespace === namespace));
}

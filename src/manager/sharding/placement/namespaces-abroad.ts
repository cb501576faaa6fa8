// What the leader knows of the namespaces that a root divides in other clusters: those that it watches, and for a cluster that it cannot
// watch those of the last published plan, which the pods have. So neither an outage nor a failover changes the numbers of a placement.
import type { ShardingConfig } from "../../../api/sharding-config.ts";
import type { Clock } from "../../../base/clock.ts";
import { remember } from "../../../base/remember.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { namespacesOf, type RouteTable } from "../../../mesh/ownership/table.ts";
import { formatRequest, type Request } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import type { AcceptedCluster } from "../../apps/accept-clusters.ts";
import { NONE_CHOSEN } from "../../apps/chosen-clusters.ts";
import type { PublishedPlans } from "../../apps/published-plans.ts";
import type { WatchedClusters } from "../../cluster-namespaces/watched-clusters.ts";
import type { KnownClusters } from "../../clusters/known-clusters.ts";
import { type ClusterNames, type NamespacesAbroad, NONE_ABROAD } from "../cluster-names.ts";
import { clustersInside } from "../cluster-owners.ts";

export interface NamespacesAbroadOptions {
  readonly clusters: Pick<KnownClusters, "of" | "decisions" | "hasSynced">;
  readonly watched: Pick<WatchedClusters, "storeOf" | "onNamespaces">;
  readonly plans: Pick<PublishedPlans, "get">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * How long a shard that could join waits for the namespaces of clusters, so that a new leader gives it the right part. It waits again
 * only after all were known for this long: whoever makes and deletes clusters again and again must not keep shards from joining.
 */
const PATIENCE_MS = 60_000;

interface Missing {
  /** The start of the wait. */
  readonly sinceMs: number;
  /** Since when nothing is missing any more. Absent: something is. */
  readonly knownSinceMs?: number;
}

export function createNamespacesAbroad({ clusters, watched, plans, clock }: NamespacesAbroadOptions) {
  /** By root, if this manager lacks the namespaces of a cluster, or has lacked them. */
  const missing = new Map<string, Missing>();
  /** By "namespace/name" of the MeshCluster, until a namespace of it changes. */
  const listed = new Map<string, { readonly store: Store<KubeObject>; readonly names: ClusterNames }>();
  watched.onNamespaces((cluster) => void listed.delete(formatRequest(cluster)));

  const watchedNames = (cluster: Request): ClusterNames | undefined => {
    const store = watched.storeOf(cluster);
    if (store === undefined) return undefined;
    const known = listed.get(formatRequest(cluster));
    if (known?.store === store) return known.names;
    const names = { cluster: cluster.name, names: store.list().map(({ metadata }) => metadata.name ?? "") };
    listed.set(formatRequest(cluster), { store, names });
    return names;
  };

  const namesIn = ({ name, kubeconfigSecret }: AcceptedCluster, app: Request): readonly ClusterNames[] | undefined => {
    const names = watchedNames({ namespace: app.namespace, name });
    if (names !== undefined) return [names];
    const plan = plans.get(app)?.plan;
    const table = plan?.clusterTables?.get(name);
    if (table !== undefined) return [plannedNames(table)(name)];
    // Nobody will read its namespaces, and no pod has owners there.
    return plan !== undefined && kubeconfigSecret === undefined ? [] : undefined;
  };

  const awaited = (app: Request, isComplete: boolean): Pick<NamespacesAbroad, "isComplete" | "awaitedUntilMs"> => {
    const key = formatRequest(app);
    const { sinceMs = clock.now(), knownSinceMs = clock.now() } = missing.get(key) ?? {};
    const isOver = clock.now() - knownSinceMs >= PATIENCE_MS;
    if (isComplete) {
      if (isOver) missing.delete(key);
      else if (missing.has(key)) missing.set(key, { sinceMs, knownSinceMs });
      return { isComplete };
    }
    const startMs = isOver ? clock.now() : Math.min(sinceMs, clock.now());
    missing.set(key, { sinceMs: startMs });
    return { isComplete, awaitedUntilMs: startMs + PATIENCE_MS };
  };

  /** @param app of the root */
  return (config: ShardingConfig, app: Request): NamespacesAbroad => {
    if (config.spec.root?.clustersBy !== "Namespace") return NONE_ABROAD;
    const { clustersFrom } = config.spec.root;
    const chosen = clustersFrom === undefined ? NONE_CHOSEN : clusters.decisions.of(app.namespace);
    if (!clusters.hasSynced || chosen === undefined) return { known: [], ...awaited(app, false) };
    const inside = clustersInside(config, clusters.of(app.namespace).accepted, chosen);
    const found = inside.map((cluster) => namesIn(cluster, app));
    return { known: found.flatMap((names) => names ?? []), ...awaited(app, !found.includes(undefined)) };
  };
}

/** The same object for the same table, so that its namespaces are counted once. */
const plannedNames = remember((table: RouteTable) => {
  const names = [...namespacesOf(table)];
  const byCluster = new Map<string, ClusterNames>();
  return (cluster: string): ClusterNames => {
    const known = byCluster.get(cluster) ?? { cluster, names };
    byCluster.set(cluster, known);
    return known;
  };
});

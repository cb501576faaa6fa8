// The desired tables of an app inside other clusters, each compiled from the namespaces of its cluster. Invariant: whatever happens to
// one cluster delays and fails nothing else: a table that is not there in time is left out, and the plan keeps the newest one. While the
// manager cannot read the namespaces of a cluster, rules that need only their names follow those that pods have.
import { sleep } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { remember } from "../../base/remember.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { TableByNames } from "../../mesh/handover/plan-cluster-tables.ts";
import type { ClusterTables } from "../../mesh/ownership/snapshot.ts";
import { namespacesOf, type RouteTable } from "../../mesh/ownership/table.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { AcceptedCluster } from "../apps/accept-clusters.ts";
import type { App } from "../apps/app.ts";
import { type ChosenClusters, NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import type { RouteSpec } from "../apps/compile/route-spec.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { createReadBack } from "../apps/read-back.ts";
import { createRoutes, type Routes, type RoutesOptions } from "../apps/routes.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import type { KnownClusters } from "../clusters/known-clusters.ts";

export interface ClusterTablesOptions extends Omit<RoutesOptions, "namespaces" | "readBack"> {
  readonly clusters: Pick<KnownClusters, "of" | "decisions" | "routes">;
  readonly plans?: Pick<PublishedPlans, "get"> | undefined;
  readonly watched: Pick<WatchedClusters, "storeOf" | "onNamespaces">;
  readonly log: Logger;
}

interface Inside {
  readonly store: Store<KubeObject>;
  readonly routes: Routes;
}

/** How long a reconcile waits for the tables of all clusters together. */
const PATIENCE_MS = 150;
/** After an error of the API server at home. */
const RETRY_MS = 5_000;

export function createClusterTables(options: ClusterTablesOptions) {
  const { clusters, watched, onCompiled, clock, log } = options;
  /** By "namespace/name" of the MeshCluster, for the apps of the namespace. */
  const insides = new Map<string, Inside>();
  watched.onNamespaces((cluster) => {
    if (watched.storeOf(cluster) === undefined) insides.delete(formatRequest(cluster));
  });

  /** Of the namespaces of all clusters, so that their tables need one list of the specs and not one for each. */
  let changesSeen = 0;
  const readBack = createReadBack(options, () => changesSeen);

  /** Undefined until the cluster's namespaces are known. */
  const insideOf = (cluster: Request): Inside | undefined => {
    const store = watched.storeOf(cluster);
    const known = insides.get(formatRequest(cluster));
    if (store === undefined || known?.store === store) return store && known;
    store.onChange(() => changesSeen++);
    const made = { store, routes: createRoutes({ ...options, namespaces: store, readBack }) };
    insides.set(formatRequest(cluster), made);
    return made;
  };

  /** By app and cluster: the tables that cost too much. */
  const costly = new Set<string>();
  const noteCost = (key: string, isCostly: boolean) => {
    if (isCostly && !costly.has(key)) log.warn({ table: key }, "the rules inside a cluster cost too much to apply");
    if (isCostly) costly.add(key);
    else costly.delete(key);
  };

  async function tableIn(
    app: App,
    cluster: AcceptedCluster,
    owner: string,
    chosen: ChosenClusters,
    signal: AbortSignal,
  ): Promise<RouteTable | undefined> {
    const { namespace } = app.ref;
    const inside = insideOf({ namespace, name: cluster.name });
    const route = app.spec?.clusterRoute?.(cluster, owner, chosen);
    if (inside === undefined || app.spec === undefined || route === undefined) return undefined;
    const more = JSON.stringify([owner, route.rules]);
    const answer = await inside.routes.tableOf(app, { ...app.spec, route: () => route }, signal, more);
    noteCost(`${formatRequest(app.ref)} ${cluster.name}`, answer === "too-costly");
    return typeof answer === "string" ? undefined : answer;
  }

  /** The table, if it is there before `late` is over. Otherwise the app is queued when the table is there. */
  async function inTime(
    app: App,
    work: Promise<RouteTable | undefined>,
    late: Promise<undefined>,
  ): Promise<RouteTable | undefined> {
    const settled = work.catch((error: unknown) => {
      log.warn({ err: error, app: formatRequest(app.ref) }, "a table inside a cluster could not be checked");
      clock.after(RETRY_MS, () => onCompiled(app.ref));
      return undefined;
    });
    let isLate = false;
    const first = await Promise.race([
      settled,
      late.then(() => {
        isLate = true;
        return undefined;
      }),
    ]);
    if (isLate) void settled.then((table) => table && onCompiled(app.ref));
    return first;
  }

  return {
    /**
     * The owners of namespaces that pods have in a cluster which the manager does not watch, so that a removed shard leaves its
     * namespaces there, too. Undefined if the rules need more than names. The spec must have been read back.
     */
    byNames(app: App): TableByNames | undefined {
      const { spec, ref } = app;
      if (options.source.readsNamespaceLabels || spec?.clusterRoute === undefined) return undefined;
      return ({ name, owner }, inForce) => {
        const cluster = clusters.of(ref.namespace).accepted.find((each) => each.name === name);
        const isWatched = watched.storeOf({ namespace: ref.namespace, name }) !== undefined;
        const chosen = clusters.decisions.of(ref.namespace) ?? NONE_CHOSEN;
        const route = isWatched ? undefined : cluster && spec.clusterRoute?.(cluster, owner, chosen);
        return route && tableOfNames(inForce)(route);
      };
    },
    /** By the names of the clusters whose namespaces are known; undefined if the app divides none. */
    async tablesOf(app: App, signal: AbortSignal): Promise<ClusterTables | undefined> {
      const { accepted } = clusters.of(app.ref.namespace);
      const divided = accepted.filter(({ kubeconfigSecret }) => kubeconfigSecret !== undefined);
      if (app.spec?.clusterRoute === undefined || divided.length === 0) return undefined;
      const owned = clusters.routes(app, options.plans?.get(app.ref)?.plan);
      if (owned === undefined) return undefined;
      const owners = new Map(owned.map(({ name, owner }) => [name, owner]));
      const chosen = clusters.decisions.of(app.ref.namespace) ?? NONE_CHOSEN;
      const late = sleep(clock, PATIENCE_MS, signal).then(
        () => undefined,
        () => undefined,
      );
      const tables = await Promise.all(
        divided.map(async (cluster) => {
          const owner = owners.get(cluster.name);
          const table = owner === undefined ? undefined : await inTime(app, tableIn(app, cluster, owner, chosen, signal), late);
          return table === undefined ? [] : [[cluster.name, table] as const];
        }),
      );
      return new Map(tables.flat());
    },
    forget(app: Request): void {
      for (const { routes } of insides.values()) routes.forget(app);
      for (const key of costly) if (key.startsWith(`${formatRequest(app)} `)) costly.delete(key);
    },
  };
}

const tableOfNames = remember((inForce: RouteTable) =>
  remember((route: RouteSpec) =>
    compileNow(
      route,
      namespacesOf(inForce).map((name) => ({ name, labels: {} })),
    ),
  ),
);

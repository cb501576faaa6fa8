// Writes the status of the MeshClusters of one namespace. The apps' plans decide who owns a cluster.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { createClientPace } from "../../base/client-pace.ts";
import type { Clock } from "../../base/clock.ts";
import { remember } from "../../base/remember.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Reconciler } from "../../runtime/reconciler.ts";
import { writeStatus } from "../../runtime/status-writer.ts";
import type { Store } from "../../runtime/store.ts";
import { type AppSpec, type Apps, dividesClusters } from "../apps/app.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";
import { plannedClusters } from "../apps/planned-clusters.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { endOfAuthorities } from "../cluster-namespaces/credential-ends.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import { type AppOfCluster, clusterStatus, type StatusFacts } from "./cluster-status.ts";
import { nextVerdictMs } from "./credentials-verdict.ts";
import { isWaitingToHear } from "./kept-verdicts.ts";
import type { KnownClusters } from "./known-clusters.ts";

interface ClustersReconcilerOptions {
  readonly client: Pick<KubeClient, "get" | "patch">;
  readonly store: Pick<Store<MeshCluster>, "list">;
  readonly apps: Pick<Apps, "list">;
  readonly plans: Pick<PublishedPlans, "get">;
  readonly clusters: Pick<KnownClusters, "of" | "decisions">;
  readonly watched: Pick<WatchedClusters, "stateOf" | "endsOf">;
  readonly events: Pick<EventRecorder, "event">;
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
}

/** The first plan of an app queues the namespace before that; an app that goes before it has one does not. */
const LOOK_AGAIN_MS = 5_000;
/** Within this time after a failover pods report, and namespaces are listed. Until then the statuses stay as they are. */
const UNHEARD_MS = 60_000;
/**
 * How often each status is written, since the servers of clusters decide how often their certificates, errors and namespaces change.
 * Ten writes come at once, so that a handover is seen as it goes.
 */
const WRITES = { perSecond: 1 / 6, burst: 9 };
/** Timers are bounded. */
const LONGEST_PAUSE_MS = 6 * 3_600_000;

export function createClustersReconciler(options: ClustersReconcilerOptions): Reconciler {
  const { client, store, apps, plans, clusters, watched, events, clock } = options;
  const pace = createClientPace({ ...WRITES, clock });
  /** By namespace, by the cluster's name: since when the manager has waited to hear of it. */
  const unheard = new Map<string, ReadonlyMap<string, number>>();
  /** By namespace: when this manager first looked at it. */
  const firstLooks = new Map<string, number>();
  /** By the cluster's name. */
  const appsIn = (namespace: string): ReadonlyMap<string, AppOfCluster[]> => {
    const { accepted } = clusters.of(namespace);
    const facts = new Map(accepted.map((each) => [each.name, each]));
    const chosen = clusters.decisions.of(namespace);
    const all = apps.list(namespace).flatMap(({ ref, spec }) => {
      const { plan } = plans.get(ref) ?? {};
      if (plan === undefined) return [];
      const { clusterWaits = [], clusterTroubles = [], clusterTables } = plan;
      const waits = byCluster(clusterWaits);
      return plannedClusters(plan).map((route) => ({
        app: ref.name,
        route,
        table: clusterTables?.get(route.name),
        idleRules: idleOf(spec, facts.get(route.name), chosen),
        waits: waits.get(route.name) ?? [],
        troubles: clusterTroubles.filter(({ cluster }) => cluster === route.name),
        missingDecision: missingOf(spec, facts.get(route.name), chosen),
      }));
    });
    return Map.groupBy(all, ({ route }) => route.name);
  };
  /** Its text names neither a time nor a server, so that a server with ever new certificates makes one Event. */
  const tellOfEnds = (before: MeshCluster, after: MeshCluster | undefined) => {
    const reasonOf = (object: MeshCluster | undefined) =>
      object?.status?.conditions?.find(({ type }) => type === "CredentialsValid")?.reason ?? "";
    const reason = reasonOf(after);
    const words = END_EVENTS[reason];
    if (words !== undefined && reason !== reasonOf(before)) events.event(before, "Warning", `Credentials${reason}`, words);
  };
  /** @returns after how long the status may be written; 0 if it was */
  const publish = async (object: MeshCluster, facts: Omit<StatusFacts, "object">, signal: AbortSignal): Promise<number> => {
    const key = formatRequest({ namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" });
    const waitMs = Math.ceil(pace.charge(key, 0));
    if (waitMs > 0) return waitMs;
    const update = (current: MeshCluster) => clusterStatus({ ...facts, object: current });
    const written = await writeStatus(client, MESH_CLUSTERS, object, update, { signal });
    if (written !== object) pace.charge(key, 1);
    tellOfEnds(object, written);
    return 0;
  };
  return {
    async reconcile({ name: namespace }, signal) {
      const nowMs = clock.monotonicMs();
      const firstLookMs = firstLooks.get(namespace) ?? nowMs;
      firstLooks.set(namespace, firstLookMs);
      // A new leader has no plans yet, and would say that nobody owns the clusters. Some apps never get one, for example without a StatefulSet.
      const isEarly = apps.list(namespace).some((app) => dividesClusters(app) && plans.get(app.ref) === undefined);
      if (isEarly && nowMs - firstLookMs < UNHEARD_MS) return { requeueAfterMs: LOOK_AGAIN_MS };
      const { refused, accepted } = clusters.of(namespace);
      const upstreams = new Map(accepted.map((cluster) => [cluster.name, cluster.upstream]));
      const found = appsIn(namespace);
      const unplanned = new Set(apps.list(namespace).flatMap(({ ref }) => (plans.get(ref) === undefined ? [ref.name] : [])));
      const since = new Map<string, number>();
      const pauses: number[] = [];
      const errors: unknown[] = [];
      for (const object of store.list(namespace).filter(({ metadata }) => metadata.deletionTimestamp === undefined)) {
        const { name = "" } = object.metadata;
        const now = new Date(clock.now()).toISOString();
        const watching = upstreams.get(name) && watched.stateOf({ namespace, name });
        const appsOf = found.get(name) ?? [];
        if (isWaitingToHear(appsOf, watching)) since.set(name, unheard.get(namespace)?.get(name) ?? nowMs);
        const isLongUnheard = nowMs - (since.get(name) ?? nowMs) >= UNHEARD_MS;
        const ends = watching && [...watched.endsOf({ namespace, name }), ...authorityEnds(upstreams.get(name) ?? {})];
        const nextMs = ends && nextVerdictMs(ends, clock.now());
        if (nextMs !== undefined) pauses.push(Math.min(LONGEST_PAUSE_MS, nextMs - clock.now()));
        const facts = { refused: refused.get(name), apps: appsOf, unplanned, watched: watching, ends, isLongUnheard, now };
        try {
          const waitMs = await publish(object, facts, signal);
          if (waitMs > 0) pauses.push(waitMs);
        } catch (error) {
          signal.throwIfAborted();
          errors.push(error);
        }
      }
      unheard.set(namespace, since);
      if (errors.length > 0) throw errors[0];
      for (const sinceMs of since.values()) if (sinceMs + UNHEARD_MS > nowMs) pauses.push(sinceMs + UNHEARD_MS - nowMs);
      return pauses.length === 0 ? {} : { requeueAfterMs: Math.min(...pauses) };
    },
  };
}

const END_EVENTS: Readonly<Record<string, string>> = {
  ExpiringSoon: "a certificate or token for the cluster ends soon: the condition CredentialsValid names it",
  Expired: "a certificate or token for the cluster has ended: the condition CredentialsValid names it",
};

/** Clusters are accepted once for each change of a MeshCluster. */
const authorityEnds = remember(({ ca }: { readonly ca?: string | undefined }) => endOfAuthorities("CertificateAuthority", ca));

function idleOf(
  spec: AppSpec | undefined,
  cluster: ClusterFacts | undefined,
  chosen: ChosenClusters | undefined,
): readonly string[] | undefined {
  return cluster && chosen && spec?.idleClusterRules?.(cluster, chosen);
}

function missingOf(
  spec: AppSpec | undefined,
  cluster: ClusterFacts | undefined,
  chosen: ChosenClusters | undefined,
): string | undefined {
  return cluster && chosen && spec?.missingDecision?.(cluster, chosen);
}

/** Each wait once for each of its clusters: after a failover, all pods may wait for all clusters. */
function byCluster(waits: readonly ClusterWait[]): ReadonlyMap<string, readonly ClusterWait[]> {
  const found = new Map<string, ClusterWait[]>();
  for (const wait of waits) {
    for (const name of wait.clusters) {
      const known = found.get(name);
      if (known === undefined) found.set(name, [wait]);
      else known.push(wait);
    }
  }
  return found;
}

// Plans one app by its pods and publishes the routes to their proxies. A restarted manager finds the version of the
// routes again in the status and in the registrations. Invariant: nothing is awaited between reading the claims and publishing.
import type { AppStatus } from "../../api/app-status.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { GoneAppPod } from "../../mesh/handover/claims.ts";
import { type Issue, nextIssue } from "../../mesh/handover/issue.ts";
import { countMoves } from "../../mesh/handover/moves.ts";
import { type AppPlan, planApp } from "../../mesh/handover/plan-app.ts";
import type { TableByNames } from "../../mesh/handover/plan-cluster-tables.ts";
import { planDissolution } from "../../mesh/handover/plan-dissolution.ts";
import { podKey } from "../../mesh/handover/proxy-facts.ts";
import { lockNameFor } from "../../mesh/ownership/lock.ts";
import type { ClusterTables, Snapshot } from "../../mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../mesh/ownership/table.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { type App, type Apps, dividesClusters, type PodSelection } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import type { KnownClusters } from "../clusters/known-clusters.ts";
import { appPods, appsIn, type PodView, podViewIn } from "../facts/app-pods.ts";
import type { GonePod, PastOfPods } from "../facts/pod-history.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { readStatus, type StatusFeed } from "../status/status-feed.ts";
import type { AcceptedApp } from "./accept-app.ts";

interface PublisherOptions {
  readonly apps: Pick<Apps, "get">;
  readonly pods: Pick<PodLists, "list">;
  readonly past: PastOfPods;
  readonly namespaces: Pick<Store<KubeObject>, "get" | "list">;
  readonly registry: ProxyRegistry;
  readonly clusters: Pick<KnownClusters, "routes">;
  readonly plans?: Pick<PublishedPlans, "get" | "set"> | undefined;
  readonly observed?: Pick<ManagerMetrics, "moved"> | undefined;
  readonly clock: Pick<Clock, "now">;
  readonly log: Logger;
  /** As in the acceptance, the status feed and the cluster tables. */
  readonly isFirstServed: (app: App) => boolean;
  readonly previous: StatusFeed["previous"];
  readonly tableByNames: (app: App) => TableByNames | undefined;
}

export interface PublishedRoutes {
  readonly plan: AppPlan;
  readonly pods: readonly AppPod[];
  readonly version: number;
}

export function createPublisher(options: PublisherOptions) {
  const { apps, pods, past, namespaces, registry, clock, log, isFirstServed, previous, tableByNames } = options;
  /** What was last published of each app. The proxies keep the routes of an app that is gone. */
  const issues = new Map<string, Issue>();
  const desiredTables = new Map<string, RouteTable>();

  function send(app: App, plan: AppPlan, ownPods: readonly AppPod[]): number {
    const key = formatRequest(app.ref);
    const before = issues.get(key);
    const issue = nextIssue(before, lastVersion(app), plan, ownPods, registry.facts);
    issues.set(key, issue);
    if (issue.version !== before?.version) {
      log.info({ app: key, version: issue.version, waits: plan.waits.length }, "route issued");
    }
    for (const pod of ownPods) {
      const snapshot = pod.proxy === "own" ? issue.snapshots.get(plan.rulesFor(pod).digest) : undefined;
      if (snapshot === undefined) continue;
      registry.publish(podKey(pod), ROUTE, withSharedTables(snapshot));
    }
    return issue.version;
  }

  /** Equal tables of all pods are one object, so that the planner reads each table once. */
  function withSharedTables(snapshot: Snapshot): Snapshot {
    const { share } = registry.tables;
    const { table, clusterTables: inside } = snapshot;
    if (inside === undefined) return { ...snapshot, table: share(table) };
    const shared = new Map([...inside].map(([name, each]) => [name, share(each)]));
    return { ...snapshot, table: share(table), clusterTables: shared };
  }

  function observeMoves({ ref }: App, { desired }: AppPlan): void {
    const before = desiredTables.get(formatRequest(ref));
    if (before !== undefined) options.observed?.moved(ref, countMoves(before, desired));
    desiredTables.set(formatRequest(ref), desired);
  }

  /** What every plan of an app is computed from: its pods, living and gone. */
  function podFactsOf(app: App, selection: PodSelection, listed: readonly Pod[]) {
    const { namespace, name } = app.ref;
    const knowsAll = isFirstServed(app);
    const view = podViewIn(namespace, {
      apps,
      factsOf: registry.facts,
      past: knowsAll ? { ...past, isStatusLate: () => false } : past,
    });
    return {
      app: { namespace, name },
      words: app.words,
      pods: appPods(selection, listed, view),
      factsOf: registry.facts,
      gone: goneAppPods(selection, past.gone(namespace), knowsAll, view),
      goneAbroad: goneAppPods(selection, past.goneAbroad(namespace), knowsAll, view),
    };
  }

  /** Returns undefined until the pods, and the clusters that the app divides, are known. Their list queues the app again. */
  function publish({ app, selection, bySpec }: AcceptedApp, inside: ClusterTables | undefined): PublishedRoutes | undefined {
    const listed = pods.list(app.ref.namespace);
    if (listed === undefined) return undefined;
    const divides = bySpec !== undefined && dividesClusters(app);
    const clusters = divides ? options.clusters.routes(app, options.plans?.get(app.ref)?.plan) : undefined;
    if (divides && clusters === undefined) return undefined;
    const podFacts = podFactsOf(app, selection, listed);
    const plan =
      bySpec === undefined || app.spec === undefined
        ? planDissolution({
            ...podFacts,
            lockName: app.spec?.lockName,
            namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? ""),
            lastLockName: lastLockName(app.object.status),
          })
        : planApp({
            ...app.spec,
            ...podFacts,
            bySpec,
            clusters,
            clusterTables: inside,
            tableByNames: tableByNames(app),
            ownersHashes: previous(app)?.ownersHashes,
            isYoung: youngAt(namespaces, clock.now()),
          });
    const version = send(app, plan, podFacts.pods);
    observeMoves(app, plan);
    options.plans?.set(app.ref, plan);
    return { plan, pods: podFacts.pods, version };
  }

  return {
    publish,
    forget(ref: Request): void {
      issues.delete(formatRequest(ref));
      desiredTables.delete(formatRequest(ref));
    },
  };
}

function goneAppPods(app: PodSelection, gone: readonly GonePod[], knowsAll: boolean, view: PodView): GoneAppPod[] {
  return gone.flatMap(({ pod, facts }): GoneAppPod[] => {
    if (pod === undefined) return knowsAll ? [] : ["unknown"];
    return appPods(app, [pod], { ...view, appsOf: () => appsIn(facts) }).map((each) => ({ pod: each, facts }));
  });
}

// The object with the status may have joined the app just now, in front of the others.
function lastVersion({ objects }: App): number {
  return Math.max(0, ...objects.map(({ status }) => status?.routeVersion ?? 0));
}

/** The operator's own lock name: the lock of any subset, without its suffix. */
function lastLockName(status: AppStatus | undefined): string | undefined {
  const { name = DEFAULT_SUBSET, lock } = readStatus(status)?.subsets?.find((each) => each.lock !== undefined) ?? {};
  return lock?.slice(0, lock.length - lockNameFor("", name).length);
}

const YOUNG_MS = 10_000;

/** True for a namespace that is young at `nowMs`: `kubectl label` often moves it while it is still empty. */
export function youngAt(namespaces: Pick<Store<KubeObject>, "get">, nowMs: number): (namespace: string) => boolean {
  return (name) => {
    const born = namespaces.get(name)?.metadata.creationTimestamp;
    return born !== undefined && nowMs - Date.parse(born) < YOUNG_MS;
  };
}

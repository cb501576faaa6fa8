// Reconciles one app of any source kind: accepts it, plans and publishes its routes, and writes its status.
// Level-based: a restarted manager finds the version of the routes again in the status and in the
// registrations. Invariant: nothing is awaited between reading the claims and publishing.
import type { AppStatus } from "../../api/app-status.ts";
import type { Pod, ReplicaSet, Service } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { GoneAppPod } from "../../mesh/handover/claims.ts";
import { type Issue, nextIssue } from "../../mesh/handover/issue.ts";
import { countMoves } from "../../mesh/handover/moves.ts";
import { type AppPlan, planApp } from "../../mesh/handover/plan-app.ts";
import { isDissolved, planDissolution } from "../../mesh/handover/plan-dissolution.ts";
import { podKey } from "../../mesh/handover/proxy-facts.ts";
import { lockNameFor } from "../../mesh/ownership/lock.ts";
import type { ClusterTables, Snapshot } from "../../mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../mesh/ownership/table.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { InjectionReady } from "../admission/configuration/injection-ready.ts";
import { type App, type Apps, dividesClusters, isHeld, isLive, type PodSelection, type Source } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { createRoutes, type RoutesOptions } from "../apps/routes.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import type { KnownClusters } from "../clusters/known-clusters.ts";
import { appPods, appsIn, type PodView, podViewIn } from "../facts/app-pods.ts";
import type { KindWatch } from "../facts/kind-watch.ts";
import type { GonePod, PastOfPods } from "../facts/pod-history.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { LabelStates } from "../labels/label-state.ts";
import { type LabelsStatus, labelsStatus } from "../labels/labels-status.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import { createRestarter, type RestarterOptions, soonest, writeAndRestart } from "../restart/restarter.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { appStatus, injectionStatus } from "../status/app-status.ts";
import { conditionOf } from "../status/facts.ts";
import { webhookVerdict } from "../status/intercepted.ts";
import { refusedPodsText } from "../status/refused-pods.ts";
import { createStatusFeed, readStatus, type StatusFeedOptions } from "../status/status-feed.ts";
import { type AcceptedApp, createAcceptance, type UnplannedFacts } from "./accept-app.ts";
import { createClusterTables } from "./cluster-tables.ts";

type AppReconcilerOptions = RoutesOptions &
  RestarterOptions &
  Pick<StatusFeedOptions, "store"> & {
    readonly observed?: (NonNullable<StatusFeedOptions["observed"]> & Pick<ManagerMetrics, "moved">) | undefined;
    readonly source: Source;
    readonly client: Pick<KubeClient, "get" | "patch" | "request">;
    readonly apps: Pick<Apps, "get">;
    readonly pods: PodLists;
    readonly past: PastOfPods;
    readonly namespaces: Pick<Store<KubeObject>, "get">;
    readonly registry: ProxyRegistry;
    readonly clusters: Pick<KnownClusters, "routes" | "of" | "decisions">;
    readonly watched: Pick<WatchedClusters, "storeOf" | "onNamespaces">;
    readonly injection?: InjectionReady | undefined;
    readonly services: KindWatch<Service>;
    readonly replicaSets: KindWatch<ReplicaSet>;
    readonly labels: Pick<LabelStates, "get">;
    readonly plans?: Pick<PublishedPlans, "get" | "set" | "forget"> | undefined;
  };

interface PublishedRoutes {
  readonly plan: AppPlan;
  readonly pods: readonly AppPod[];
  readonly version: number;
}

export function createAppReconciler(options: AppReconcilerOptions): Reconciler {
  const { source, apps, pods, past, namespaces, registry, injection, services, replicaSets, labels, clock, log } = options;
  const statuses = createStatusFeed({ ...options, resource: source.resource });
  const restarter = createRestarter(options);
  const routes = createRoutes(options);
  const clusterTables = createClusterTables(options);
  const acceptance = createAcceptance({ ...options, routes, statuses });
  /** What was last published of each app. The proxies keep the routes of an app that is gone. */
  const issues = new Map<string, Issue>();
  const desiredTables = new Map<string, RouteTable>();
  const parts = [statuses, routes, clusterTables, acceptance, restarter, injection, services, replicaSets, options.plans];

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

  /** Returns undefined until the pods, and the clusters that the app divides, are known: nothing is granted, and their list queues the app again. */
  function publish({ app, selection, bySpec }: AcceptedApp, inside: ClusterTables | undefined): PublishedRoutes | undefined {
    const { namespace, name } = app.ref;
    const listed = pods.list(namespace);
    if (listed === undefined) return undefined;
    const divides = bySpec !== undefined && dividesClusters(app);
    const clusters = divides ? options.clusters.routes(app, options.plans?.get(app.ref)?.plan) : undefined;
    if (divides && clusters === undefined) return undefined;
    const isFirstServed = acceptance.isFirstServed(app);
    const view = podViewIn(namespace, {
      apps,
      factsOf: registry.facts,
      past: isFirstServed ? { ...past, isStatusLate: () => false } : past,
    });
    const ownPods = appPods(selection, listed, view);
    const common = {
      app: { namespace, name },
      words: app.words,
      pods: ownPods,
      factsOf: registry.facts,
      gone: goneAppPods(selection, past.gone(namespace), isFirstServed, view),
      goneAbroad: goneAppPods(selection, past.goneAbroad(namespace), isFirstServed, view),
    };
    const plan =
      bySpec === undefined || app.spec === undefined
        ? planDissolution({
            ...common,
            lockName: app.spec?.lockName,
            namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? ""),
            lastLockName: lastLockName(app.object.status),
          })
        : planApp({
            ...app.spec,
            ...common,
            bySpec,
            clusters,
            clusterTables: inside,
            tableByNames: clusterTables.byNames(app),
            ownersHashes: statuses.previous(app)?.ownersHashes,
            isYoung: youngAt(namespaces, clock.now()),
          });
    const version = send(app, plan, ownPods);
    observeMoves(app, plan);
    options.plans?.set(app.ref, plan);
    return { plan, pods: ownPods, version };
  }

  function observeMoves({ ref }: App, { desired }: AppPlan): void {
    const before = desiredTables.get(formatRequest(ref));
    if (before !== undefined) options.observed?.moved(ref, countMoves(before, desired));
    desiredTables.set(formatRequest(ref), desired);
  }

  function webhookVerdictOf({ ref, spec }: App, ownPods: readonly AppPod[]) {
    const server = spec?.webhook;
    if (server === undefined) {
      services.forget(ref);
      return undefined;
    }
    const meshed = ownPods.filter(({ proxy, ended, terminating }) => proxy === "own" && !ended && !terminating);
    const objects = meshed.flatMap(({ name, namespace }) => pods.get(name, namespace) ?? []);
    const problemOf = ({ metadata: { namespace = "", name = "" } }: Pod) =>
      registry.facts(podKey({ namespace, name }))?.webhookProblem ?? "";
    return webhookVerdict({ server, pods: objects, problemOf, services: services.list(ref) });
  }

  function statusFactsOf(app: App, unplanned: UnplannedFacts, published: PublishedRoutes) {
    const { plan } = published;
    return {
      ...unplanned,
      ...published,
      factsOf: registry.facts,
      generation: app.object.metadata.generation ?? 0,
      // A dissolution has the default subset.
      lockName: app.spec?.lockName ?? plan.rules.get(DEFAULT_SUBSET)?.lockName ?? "",
      words: app.words,
      describe: app.spec?.describe,
      // The pods of a ShardingConfig belong to a StatefulSet, so no ReplicaSet is theirs.
      refusedPods: app.pods.statefulSet === undefined ? refusedPodsText(replicaSets.list(app.ref), app.pods) : "",
      webhook: plan.isDissolving ? undefined : webhookVerdictOf(app, published.pods),
      labelsAfter: (before: LabelsStatus | undefined) =>
        labelsStatus(isLive(app) ? (app.spec?.labelled ?? []) : [], (of) => labels.get(of, app.ref), before),
    };
  }

  /** Returns undefined if the pods are not known yet. Then no status is written. */
  async function serve(seen: App, unplanned: UnplannedFacts, signal: AbortSignal): Promise<Result | undefined> {
    const accepted = await acceptance.accept(seen, unplanned, signal);
    if ("instead" in accepted) return accepted.instead;
    const { app } = accepted;
    const inside = accepted.bySpec && (await clusterTables.tablesOf(app, signal));
    const published = publish(accepted, inside);
    if (published === undefined) return undefined;
    const { plan, version } = published;
    if (plan.isDissolving && isDissolved(plan, published.pods, registry.facts) && isHeld(app)) {
      await acceptance.removeFinalizers(app.objects, signal);
      log.info({ app: formatRequest(app.ref), version }, "every pod owns everything: the finalizer can be removed");
      return {};
    }
    const facts = statusFactsOf(app, unplanned, published);
    const { lockName } = facts;
    return writeAndRestart(
      {
        app,
        restarter,
        statuses,
        facts: { ...facts, app: app.ref, isPaused: app.spec?.isPaused === true, hasLock: lockName !== "" },
        makeStatus: (previous, now, restart) => appStatus({ ...facts, previous, now, restart }),
      },
      signal,
    );
  }

  return {
    async reconcile(request: Request, signal: AbortSignal): Promise<Result> {
      const app = apps.get(request.name, request.namespace);
      if (app === undefined) {
        for (const part of parts) part?.forget(request);
        issues.delete(formatRequest(request));
        desiredTables.delete(formatRequest(request));
        return {};
      }
      if (app.ref.kind !== source.resource.kind) return {};
      const look = injection?.look(app, conditionOf(statuses.previous(app), "InjectionReady"));
      const unplanned = { injection: look?.verdict };
      const { generation = 0 } = app.object.metadata;
      const writeInjectionAlone = async () => {
        if (unplanned.injection === undefined) return;
        await statuses.write(app, (previous, now) => injectionStatus({ ...unplanned, generation, previous, now }), signal);
      };
      const result = await serve(app, unplanned, signal).catch(async (error: unknown) => {
        await writeInjectionAlone().catch(() => undefined); // the first error is the one to report
        throw error;
      });
      if (result === undefined) await writeInjectionAlone();
      return soonest(result?.requeueAfterMs, look?.againMs);
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

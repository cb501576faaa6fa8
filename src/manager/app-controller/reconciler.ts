// Reconciles one app of any source kind: accepts it, plans and publishes its routes, and writes its status.
import type { Pod, ReplicaSet, Service } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import { isDissolved } from "../../mesh/handover/plan-dissolution.ts";
import { podKey } from "../../mesh/handover/proxy-facts.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { InjectionReady } from "../admission/configuration/injection-ready.ts";
import { type App, type Apps, isHeld, isLive, type Source } from "../apps/app.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import { createRoutes, type RoutesOptions } from "../apps/routes.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import type { KnownClusters } from "../clusters/known-clusters.ts";
import type { KindWatch } from "../facts/kind-watch.ts";
import type { PastOfPods } from "../facts/pod-history.ts";
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
import { createStatusFeed, type StatusFeedOptions } from "../status/status-feed.ts";
import { createAcceptance, type UnplannedFacts } from "./accept-app.ts";
import { createClusterTables } from "./cluster-tables.ts";
import { createPublisher, type PublishedRoutes } from "./publish-routes.ts";

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

export function createAppReconciler(options: AppReconcilerOptions): Reconciler {
  const { source, apps, pods, registry, injection, services, replicaSets, labels, log } = options;
  const statuses = createStatusFeed({ ...options, resource: source.resource });
  const restarter = createRestarter(options);
  const routes = createRoutes(options);
  const clusterTables = createClusterTables(options);
  const acceptance = createAcceptance({ ...options, routes, statuses });
  const publisher = createPublisher({
    ...options,
    isFirstServed: acceptance.isFirstServed,
    previous: statuses.previous,
    tableByNames: clusterTables.byNames,
  });
  const parts = [
    statuses,
    routes,
    clusterTables,
    acceptance,
    publisher,
    restarter,
    injection,
    services,
    replicaSets,
    options.plans,
  ];

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
    const published = publisher.publish(accepted, inside);
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

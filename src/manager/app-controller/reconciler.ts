// Reconciles one app of any source kind: accepts it, publishes its routes, and writes its status.
// Level-based: its parts keep only what a restarted manager may forget.
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import type { InjectionReady } from "../admission/configuration/injection-ready.ts";
import { type App, isHeld, isLive, type Source } from "../apps/app.ts";
import { createRoutes, type RoutesOptions } from "../apps/routes.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { ServiceWatch } from "../facts/service-watch.ts";
import type { LabelStates } from "../labels/label-state.ts";
import { type LabelsStatus, labelsStatus } from "../labels/labels-status.ts";
import { isDissolved } from "../plan/plan-dissolution.ts";
import { createRestarter, type RestarterOptions } from "../restart/restarter.ts";
import { soonest, writeAndRestart } from "../restart/write-and-restart.ts";
import { appStatus, injectionStatus } from "../status/app-status.ts";
import { conditionOf } from "../status/facts.ts";
import { createStatusFeed, type StatusFeedOptions } from "../status/status-feed.ts";
import { webhookVerdict } from "../status/webhook-verdict.ts";
import { createAcceptance, type UnplannedFacts } from "./accept-app.ts";
import { createRoutePublisher, type PublishedRoutes, type RoutePublisherOptions } from "./publish-routes.ts";

/** What the parts need, and what the reconciler itself reads. */
export type AppReconcilerOptions = RoutesOptions &
  RoutePublisherOptions &
  RestarterOptions &
  Pick<StatusFeedOptions, "observed" | "store"> & {
    readonly source: Source;
    readonly client: Pick<KubeClient, "get" | "patch" | "request">;
    /** Absent if the manager runs without webhooks. */
    readonly injection?: InjectionReady | undefined;
    readonly services: ServiceWatch;
    readonly labels: Pick<LabelStates, "get">;
  };

export function createAppReconciler(options: AppReconcilerOptions): Reconciler {
  const { source, apps, pods, registry, injection, services, labels, log } = options;
  const statuses = createStatusFeed({ ...options, resource: source.resource });
  const restarter = createRestarter(options);
  const routes = createRoutes(options);
  const acceptance = createAcceptance({ ...options, routes, statuses });
  const publisher = createRoutePublisher(options);

  const parts = [statuses, routes, acceptance, publisher, restarter, injection, services];

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
    const published = publisher.publish(accepted, acceptance.isFirstServed(app), statuses.previous(app));
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

// Plans an app from the facts of this moment, gives the snapshots a version, and publishes them to the
// proxies. Invariant: nothing is awaited between reading the claims and publishing. A restarted manager finds
// the version again in the status and in the registrations.
import type { AppStatus } from "../../api/app-status.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeObject } from "../../kube/types.ts";
import { lockNameFor } from "../../route/lock.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { App, Apps, PodSelection } from "../apps/app.ts";
import { type AppPod, appPods, appsIn, type PodView, podViewIn } from "../facts/app-pods.ts";
import type { GonePod, PastOfPods } from "../facts/pod-history.ts";
import { podKey } from "../facts/pod-key.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { youngAt } from "../facts/young-namespaces.ts";
import { type Issue, nextIssue } from "../plan/issue.ts";
import { type AppPlan, planApp } from "../plan/plan-app.ts";
import { planDissolution } from "../plan/plan-dissolution.ts";
import type { GoneAppPod } from "../plan/pod-claims.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { readStatus } from "../status/display-names.ts";
import type { AcceptedApp } from "./accept-app.ts";

export interface PublishedRoutes {
  readonly plan: AppPlan;
  readonly pods: readonly AppPod[];
  readonly version: number;
}

export interface RoutePublisher {
  /**
   * Returns undefined until the pods are known: then nothing is planned or granted, and the list of the pods
   * queues the app again.
   * @param isFirstServed no proxy had routes of the app before
   * @param previous the last written status
   */
  publish(app: AcceptedApp, isFirstServed: boolean, previous: AppStatus | undefined): PublishedRoutes | undefined;
  /** The proxies keep their routes. */
  forget(app: Request): void;
}

export interface RoutePublisherOptions {
  readonly apps: Pick<Apps, "get">;
  readonly pods: PodLists;
  readonly past: PastOfPods;
  readonly namespaces: Store<KubeObject>;
  readonly registry: ProxyRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createRoutePublisher(options: RoutePublisherOptions): RoutePublisher {
  const { apps, pods, past, namespaces, registry, clock, log } = options;
  const issues = new Map<string, Issue>();

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
      // Equal tables of all pods are one object, so that the planner reads each table once.
      registry.publish(podKey(pod), ROUTE, { ...snapshot, table: registry.tables.share(snapshot.table) });
    }
    return issue.version;
  }

  return {
    publish({ app, selection, bySpec }, isFirstServed, previous) {
      const { namespace, name } = app.ref;
      const listed = pods.list(namespace);
      if (listed === undefined) return undefined;
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
              ownersHashes: previous?.ownersHashes,
              isYoung: youngAt(namespaces, clock.now()),
            });
      return { plan, pods: ownPods, version: send(app, plan, ownPods) };
    },
    forget: (app) => issues.delete(formatRequest(app)),
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

// The operator's own lock name: the lock of any subset, without its suffix. A source kind may have no default
// subset.
function lastLockName(status: AppStatus | undefined): string | undefined {
  const { name = DEFAULT_SUBSET, lock } = readStatus(status)?.subsets?.find((each) => each.lock !== undefined) ?? {};
  return lock?.slice(0, lock.length - lockNameFor("", name).length);
}

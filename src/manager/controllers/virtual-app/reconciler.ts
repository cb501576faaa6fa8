// Reconciles one VirtualApp: gathers the facts, plans, hands every proxy its snapshot, writes the status. Level-based: what
// it remembers is the version counter, which a restart finds again in the status and in the proxies' hellos, and which apps it was
// the first to serve, which a restart may forget.
import { formatProblem } from "../../../api/problems.ts";
import { lockNameOf, type VirtualApp, type VirtualAppSpec, validateVirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { DEFAULT_SUBSET } from "../../../route/table.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import type { GoneLists, GonePod } from "../../gone-pods.ts";
import type { GoneAppPod } from "../../handover/pod-claims.ts";
import type { ManagerMetrics } from "../../metrics.ts";
import type { OlderPods } from "../../older-pods.ts";
import type { PodLists } from "../../pod-watch.ts";
import { createRestarter, type RestarterOptions } from "../../restart/restarter.ts";
import type { ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
import { type AppPod, appPods, INJECTED_LABEL, type PodView, podKey } from "../../translate/app-pods.ts";
import { notSupported } from "../../translate/not-supported.ts";
import { type AppPlan, planApp } from "../../translate/plan-app.ts";
import { isDissolved, planDissolution } from "../../translate/plan-dissolution.ts";
import { appStatus, rejectedStatus } from "../../translate/status/app-status.ts";
import { createCompiledRoutes } from "./compiled-routes.ts";
import { hasFinalizer, setFinalizer } from "./finalizer.ts";
import { type Issue, nextIssue } from "./issue.ts";
import { appsIn, podViewIn } from "./pod-view.ts";
import { createSpecCheck } from "./spec-check.ts";
import { createStatusFeed } from "./status-feed.ts";
import { writeAndRestart } from "./write-and-restart.ts";
import { youngAt } from "./young-namespaces.ts";

export interface VirtualAppReconcilerOptions extends Pick<RestarterOptions, "isLeader" | "onAnswer" | "settleMs"> {
  readonly client: Pick<KubeClient, "get" | "patch" | "createSubresource" | "request">;
  readonly apps: Store<VirtualApp>;
  readonly pods: PodLists;
  readonly gone: GoneLists;
  /** Whose status is not believed yet; default nobody's. */
  readonly older?: Pick<OlderPods, "has">;
  readonly namespaces: Store<KubeObject>;
  readonly registry: ProxyRegistry;
  readonly events: Pick<EventRecorder, "event">;
  readonly observed?: Pick<ManagerMetrics, "statusWritten">;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createVirtualAppReconciler(options: VirtualAppReconcilerOptions): Reconciler {
  const { apps, pods, gone, namespaces, registry, log } = options;
  const issued = new Map<string, Issue>();
  /**
   * The uid of each app that this process was the first to serve, since it put the finalizer on. Nobody was told anything of such an
   * app before, so it does not matter that the pods of its namespace have just been listed: a first apply waits for nothing. (Who
   * ran before that ran without this app's routes, and what is not in the mesh can be removed by force at any time.) An app that has
   * a status was served before: somebody else has taken its finalizer off.
   */
  const begun = new Map<string, string | undefined>();
  const statuses = createStatusFeed(options);
  const restarter = createRestarter(options);
  const routes = createCompiledRoutes(namespaces);
  const specs = createSpecCheck(options.client);

  /** Gives versions to what is planned, and sends it. */
  const handOut = (key: string, app: VirtualApp, plan: AppPlan, facts: readonly AppPod[]): number => {
    const before = issued.get(key);
    const issue = nextIssue(before, app.status?.routeVersion ?? 0, plan, facts, registry);
    issued.set(key, issue);
    if (issue.version !== before?.version) {
      log.info({ app: key, version: issue.version, waits: plan.waits.length }, "route issued");
    }
    for (const pod of facts) {
      const snapshot = pod.proxy === "own" ? issue.snapshots.get(plan.rulesFor(pod).digest) : undefined;
      if (snapshot !== undefined) registry.publish(podKey(pod), snapshot);
    }
    return issue.version;
  };

  return {
    async reconcile(request: Request, signal: AbortSignal): Promise<Result> {
      const key = formatRequest(request);
      const seen = apps.get(request.name, request.namespace);
      if (seen === undefined) {
        issued.delete(key); // the proxies keep what they have
        begun.delete(key);
        statuses.forget(request);
        routes.forget(key);
        specs.forget(key);
        restarter.forget(request);
        return {};
      }
      const object = specs.latest(key, seen);
      const checked = validateVirtualApp(object);
      const generation = object.metadata.generation ?? 0;
      const isDeleting = object.metadata.deletionTimestamp !== undefined;
      if (!checked.ok && !isDeleting) {
        const rejected = { generation, reason: "Invalid", message: problemsText(checked.problems.map(formatProblem)) } as const;
        await statuses.write(object, (previous, now) => rejectedStatus({ ...rejected, previous, now }), signal);
        return {};
      }
      // Before the first proxy is told anything: from then on there is something to bring back.
      const { uid } = object.metadata;
      const begin = () => void (object.status?.routeVersion === undefined && begun.set(key, uid));
      const app = isDeleting ? object : await setFinalizer(options.client, object, true, signal, begin);
      // A newer spec than the one that was checked is not spoken for: the watch brings it and queues the app again.
      if (app === undefined || (app.metadata.generation ?? 0) !== generation) return {};
      const spec = checked.ok ? checked.value.spec : specOfInjected(request.name);
      const bySpec = isDeleting ? undefined : routes.of(key, `${uid}/${generation}`, spec);
      const verdict = bySpec === undefined ? "newest" : await specs.check(key, app, bySpec, signal);
      if (verdict !== "newest") return verdict === "edited" ? { requeueAfterMs: AT_ONCE_MS } : {};

      // From here to what is handed out nothing is waited for: who may hold what is read in one moment. While that is not known nothing
      // is planned and nobody is granted anything. The list queues the app again.
      const known = pods.list(request.namespace);
      if (known === undefined) return {};
      const knowsAll = uid !== undefined && begun.get(key) === uid;
      const view = podViewIn(request.namespace, knowsAll ? { apps, registry } : options);
      const facts = appPods({ name: request.name, spec }, known, view);
      const factsOf = registry.facts;
      const common = {
        ...{ app: request, pods: facts, factsOf },
        gone: goneAppPods({ name: request.name, spec }, gone.list(request.namespace), knowsAll, view),
      };
      const plan =
        bySpec === undefined
          ? planDissolution({
              ...common,
              namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? ""),
              lockName: checked.ok ? lockNameOf(spec) : undefined,
              lastLockName: app.status?.subsets?.find(({ name }) => name === DEFAULT_SUBSET)?.lock,
            })
          : planApp({
              ...common,
              spec,
              isYoung: youngAt(namespaces, options.clock.now()),
              bySpec,
              annotations: app.metadata.annotations ?? {},
            });
      const lockName = plan.rules.get(DEFAULT_SUBSET)?.lockName ?? "";
      const version = handOut(key, app, plan, facts);
      if (isDeleting && isDissolved(plan, facts, factsOf) && hasFinalizer(app)) {
        await setFinalizer(options.client, app, false, signal);
        log.info({ app: key, version }, "every pod has the whole view: the app may go");
        return {};
      }
      const said = { generation, pods: facts, factsOf, plan, version, lockName, idle: notSupported(spec) };
      return writeAndRestart(
        {
          ...{ app, restarter, statuses },
          facts: {
            ...{ app: request, pods: facts, factsOf, plan },
            isPaused: spec.route?.paused === true,
            hasLock: lockName !== "",
          },
          makeStatus: (previous, now, restart) => appStatus({ ...said, previous, now, restart }),
        },
        signal,
      );
    },
  };
}

function goneAppPods(
  app: Parameters<typeof appPods>[0],
  gone: readonly GonePod[],
  knowsAll: boolean,
  view: PodView,
): GoneAppPod[] {
  return gone.flatMap(({ pod, facts }): GoneAppPod[] => {
    if (pod === undefined) return knowsAll ? [] : ["unknown"];
    const own = { ...view, appsOf: () => appsIn(facts) };
    return appPods(app, [pod], own).map((each) => ({ pod: each, facts }));
  });
}

// Of an app whose spec is bad: the pods that carry its proxy are known all the same.
function specOfInjected(name: string): VirtualAppSpec {
  return { selector: { matchLabels: { [INJECTED_LABEL]: name } } };
}

const AT_ONCE_MS = 1;
const MAX_PROBLEMS = 10;

function problemsText(problems: readonly string[]): string {
  const more = problems.length - MAX_PROBLEMS;
  return problems.slice(0, MAX_PROBLEMS).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

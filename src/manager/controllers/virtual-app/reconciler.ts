// Reconciles one VirtualApp: gathers the facts, plans, hands every proxy its snapshot, writes the status. Level-based: what
// it remembers is the version counter, which a restart finds again in the status and in the proxies' registrations, and which apps it was
// the first to serve, which a restart may forget.
import { formatProblem } from "../../../api/problems.ts";
import { lockNameOf, type VirtualApp, type VirtualAppSpec, validateVirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../../route/table.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import { type AppPod, appPods, type PodView } from "../../facts/app-pods.ts";
import type { GoneLists, GonePod } from "../../facts/gone-pods.ts";
import { INJECTED_LABEL } from "../../facts/injected-pod.ts";
import type { OlderPods } from "../../facts/older-pods.ts";
import { podKey } from "../../facts/pod-key.ts";
import { appsIn, podViewIn } from "../../facts/pod-view.ts";
import type { PodLists } from "../../facts/pod-watch.ts";
import { youngAt } from "../../facts/young-namespaces.ts";
import type { ManagerMetrics } from "../../metrics/metrics.ts";
import { type Issue, nextIssue } from "../../plan/issue.ts";
import { type AppPlan, planApp } from "../../plan/plan-app.ts";
import { isDissolved, planDissolution } from "../../plan/plan-dissolution.ts";
import type { GoneAppPod } from "../../plan/pod-claims.ts";
import type { ProxyRegistry } from "../../proxies/proxy-registry.ts";
import { createRestarter, type RestarterOptions } from "../../restart/restarter.ts";
import { writeAndRestart } from "../../restart/write-and-restart.ts";
import { hasFinalizer, setFinalizer } from "../../sources/finalizer.ts";
import { createCompiledRoutes } from "../../sources/virtual-app/compiled-routes.ts";
import { notSupported } from "../../sources/virtual-app/not-supported.ts";
import { createSpecCheck } from "../../sources/virtual-app/spec-check.ts";
import { appStatus, rejectedStatus } from "../../status/app-status.ts";
import { readStatus } from "../../status/display-names.ts";
import { createStatusFeed } from "../../status/status-feed.ts";

export interface VirtualAppReconcilerOptions extends Pick<RestarterOptions, "isLeader" | "onAnswer" | "settleMs"> {
  readonly client: Pick<KubeClient, "get" | "patch" | "createSubresource" | "request">;
  readonly apps: Store<VirtualApp>;
  readonly pods: PodLists;
  readonly gone: GoneLists;
  /** Whose status is not believed yet; default nobody's. */
  readonly older?: Pick<OlderPods, "has" | "wasListed">;
  readonly namespaces: Store<KubeObject>;
  readonly registry: ProxyRegistry;
  readonly events: Pick<EventRecorder, "event">;
  readonly observed?: Pick<ManagerMetrics, "statusWritten">;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createVirtualAppReconciler(options: VirtualAppReconcilerOptions): Reconciler {
  const { apps, pods, gone, older, namespaces, registry, log } = options;
  const issued = new Map<string, Issue>();
  /**
   * The uid of each app that this process was the first to serve, since it put the finalizer on. Nobody was told anything of such an
   * app before, so it does not matter that the pods of its namespace have just been listed: a first apply waits for nothing. (Who
   * ran before that ran without this app's routes, and what is not in the mesh can be removed by force at any time.) An app that has
   * a status was served before: somebody else has taken its finalizer off. Another app may have had its name before: a proxy of that
   * one, which starts when it can, goes on with what it was told, so a pod that was there before counts though it has not started.
   */
  const begun = new Map<string, string | undefined>();
  const statuses = createStatusFeed(options);
  const restarter = createRestarter(options);
  const routes = createCompiledRoutes(namespaces);
  const specs = createSpecCheck(options.client);

  /** Gives versions to what is planned, and sends it. */
  const handOut = (key: string, app: VirtualApp, plan: AppPlan, facts: readonly AppPod[]): number => {
    const before = issued.get(key);
    const issue = nextIssue(before, app.status?.routeVersion ?? 0, plan, facts, registry.facts);
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

  /** The app with a spec that may be acted upon; else what to do instead. */
  const settleSpec = async (
    key: string,
    object: VirtualApp,
    signal: AbortSignal,
  ): Promise<Settled | { readonly instead: Result }> => {
    const checked = validateVirtualApp(object);
    const { uid, generation = 0 } = object.metadata;
    const lockName = checked.ok ? lockNameOf(checked.value.spec) : undefined;
    if (object.metadata.deletionTimestamp !== undefined) {
      const spec = checked.ok ? checked.value.spec : specOfInjected(object.metadata.name ?? "");
      return { app: object, spec, lockName, bySpec: undefined };
    }
    if (!checked.ok) {
      const rejected = { generation, reason: "Invalid", message: problemsText(checked.problems.map(formatProblem)) } as const;
      await statuses.write(object, (previous, now) => rejectedStatus({ ...rejected, previous, now }), signal);
      return { instead: {} };
    }
    // Before the first proxy is told anything: from then on there is something to bring back.
    const begin = () => void (object.status?.routeVersion === undefined && begun.set(key, uid));
    const app = await setFinalizer(options.client, object, true, signal, begin);
    // A newer spec than the one that was checked is not spoken for: the watch brings it and queues the app again.
    if (app === undefined || (app.metadata.generation ?? 0) !== generation) return { instead: {} };
    const { spec } = checked.value;
    const bySpec = routes.of(key, `${uid}/${generation}`, spec);
    const verdict = await specs.check(key, app, bySpec, signal);
    if (verdict !== "newest") return { instead: verdict === "edited" ? { requeueAfterMs: AT_ONCE_MS } : {} };
    return { app, spec, lockName, bySpec };
  };

  /**
   * Plans and hands out. Not async, so that nothing is waited for in between: who may hold what is read in one moment. Undefined while
   * that is not known: nothing is planned then and nobody is granted anything; the list of the pods queues the app again.
   */
  const planNow = (key: string, request: Request, { app, spec, lockName, bySpec }: Settled): Planned | undefined => {
    const known = pods.list(request.namespace);
    if (known === undefined) return undefined;
    const { uid } = app.metadata;
    const knowsAll = uid !== undefined && begun.get(key) === uid;
    const view = podViewIn(
      request.namespace,
      knowsAll && older !== undefined ? { ...options, older: { ...older, has: () => false } } : options,
    );
    const facts = appPods({ name: request.name, spec }, known, view);
    const common = {
      ...{ app: request, pods: facts, factsOf: registry.facts },
      gone: goneAppPods({ name: request.name, spec }, gone.list(request.namespace), knowsAll, view),
    };
    const plan =
      bySpec === undefined
        ? planDissolution({
            ...{ ...common, lockName, namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? "") },
            lastLockName: readStatus(app.status)?.subsets?.find(({ name }) => name === DEFAULT_SUBSET)?.lock,
          })
        : planApp({
            ...{ ...common, spec, bySpec, annotations: app.metadata.annotations ?? {} },
            isYoung: youngAt(namespaces, options.clock.now()),
          });
    return { plan, pods: facts, version: handOut(key, app, plan, facts) };
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
      const settled = await settleSpec(key, specs.latest(key, seen), signal);
      if ("instead" in settled) return settled.instead;
      const planned = planNow(key, request, settled);
      if (planned === undefined) return {};
      const { app, spec } = settled;
      const { plan, version } = planned;
      const known = { pods: planned.pods, factsOf: registry.facts, plan };
      if (plan.isDissolving && isDissolved(plan, known.pods, known.factsOf) && hasFinalizer(app)) {
        await setFinalizer(options.client, app, false, signal);
        log.info({ app: key, version }, "every pod has the whole view: the app may go");
        return {};
      }
      const lockName = plan.rules.get(DEFAULT_SUBSET)?.lockName ?? "";
      const said = { ...known, generation: app.metadata.generation ?? 0, version, lockName, idle: notSupported(spec) };
      return writeAndRestart(
        {
          ...{ app, restarter, statuses },
          facts: { ...known, app: request, isPaused: spec.route?.paused === true, hasLock: lockName !== "" },
          makeStatus: (previous, now, restart) => appStatus({ ...said, previous, now, restart }),
        },
        signal,
      );
    },
  };
}

interface Settled {
  readonly app: VirtualApp;
  readonly spec: VirtualAppSpec;
  /** Undefined if the spec is bad. */
  readonly lockName: string | undefined;
  /** Undefined while the app is being deleted. */
  readonly bySpec: RouteTable | undefined;
}

interface Planned {
  readonly plan: AppPlan;
  readonly pods: readonly AppPod[];
  readonly version: number;
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

// Reconciles one app of any source kind: gathers the facts, plans, publishes a snapshot for every proxy,
// writes the status. Level-based, with two memories. A restarted manager finds the version counter again in
// the status and in the registrations. It may forget which apps this process served first.
import type { AppStatus } from "../../api/app-status.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { plainTexts } from "../../base/plain-text.ts";
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { lockNameFor } from "../../route/lock.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../route/table.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Reconciler, type Request, type Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { InjectionReady } from "../admission/injection-ready.ts";
import { type App, type Apps, isLive, type PodSelection, type Source, withObjects } from "../apps/app.ts";
import { MAX_TABLE_ENTRIES } from "../apps/compile/build-table.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import { isHeld, setFinalizer } from "../apps/finalizer.ts";
import { COMPILE_LIMIT_MS, createRoutes, RETRY_MS } from "../apps/routes.ts";
import { type AppPod, appPods, appsIn, type PodView, podViewIn } from "../facts/app-pods.ts";
import { INJECTED_LABEL } from "../facts/injected-pod.ts";
import type { GonePod, PastOfPods } from "../facts/pod-history.ts";
import { podKey } from "../facts/pod-key.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { ServiceWatch } from "../facts/service-watch.ts";
import { youngAt } from "../facts/young-namespaces.ts";
import type { LabelStates } from "../labels/label-state.ts";
import { type LabelsStatus, labelsStatus } from "../labels/labels-status.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import { type Issue, nextIssue } from "../plan/issue.ts";
import { type AppPlan, planApp } from "../plan/plan-app.ts";
import { isDissolved, planDissolution } from "../plan/plan-dissolution.ts";
import type { GoneAppPod } from "../plan/pod-claims.ts";
import { createRestarter, type RestarterOptions } from "../restart/restarter.ts";
import { soonest, writeAndRestart } from "../restart/write-and-restart.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { appStatus, injectionStatus, notPlacedStatus, rejectedStatus } from "../status/app-status.ts";
import { readStatus } from "../status/display-names.ts";
import { conditionOf, type StatusFacts } from "../status/facts.ts";
import { createStatusFeed } from "../status/status-feed.ts";
import { webhookVerdict } from "../status/webhook-verdict.ts";

export interface AppReconcilerOptions extends Pick<RestarterOptions, "evictor" | "onAnswer" | "settleMs"> {
  readonly source: Source;
  readonly client: Pick<KubeClient, "get" | "patch" | "request">;
  /** The apps of all source kinds. */
  readonly apps: Pick<Apps, "get">;
  readonly pods: PodLists;
  readonly past: PastOfPods;
  readonly namespaces: Store<KubeObject>;
  readonly registry: ProxyRegistry;
  /** Absent if the manager runs without webhooks. */
  readonly injection?: InjectionReady | undefined;
  readonly services: ServiceWatch;
  readonly labels: Pick<LabelStates, "get">;
  readonly events: Pick<EventRecorder, "event">;
  readonly observed?: Pick<ManagerMetrics, "statusWritten">;
  readonly compile: Compile;
  /** An app's route is compiled: its next reconcile can use it. */
  readonly onCompiled: (app: Request) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createAppReconciler(options: AppReconcilerOptions): Reconciler {
  const { source, apps, pods, past, namespaces, registry, client, injection, services, labels, clock, log } = options;
  const { resource } = source;
  const issued = new Map<string, Issue>();
  /**
   * The uid of each app that this process served first, because it added the finalizer. No proxy had routes
   * of such an app before. So a first apply need not wait for the grace time after the first list of the
   * namespace's pods. An app with a status was served before, and somebody removed its finalizer. An earlier
   * app may have had the same name, and its proxies may keep old routes. So an older pod counts although it
   * has not started.
   */
  const begun = new Map<string, string | undefined>();
  const statuses = createStatusFeed({ ...options, resource });
  const restarter = createRestarter(options);
  const routes = createRoutes(options);

  /** Gives versions to the planned snapshots, and publishes them. */
  const handOut = (key: string, app: App, plan: AppPlan, own: readonly AppPod[]): number => {
    const before = issued.get(key);
    const issue = nextIssue(before, lastVersion(app), plan, own, registry.facts);
    issued.set(key, issue);
    if (issue.version !== before?.version) {
      log.info({ app: key, version: issue.version, waits: plan.waits.length }, "route issued");
    }
    for (const pod of own) {
      const snapshot = pod.proxy === "own" ? issue.snapshots.get(plan.rulesFor(pod).digest) : undefined;
      if (snapshot === undefined) continue;
      // Equal tables of all pods are one object, so that the planner reads each table once.
      registry.publish(podKey(pod), ROUTE, { ...snapshot, table: registry.tables.share(snapshot.table) });
    }
    return issue.version;
  };

  // What they had is in the hands of pods, not in the objects: it is handed over like after any other edit.
  // The others hold the app.
  const letGo = ({ leaving }: App, signal: AbortSignal) =>
    Promise.all(leaving.map((each) => setFinalizer(client, resource, each, false, signal)));

  const reject = (app: App, said: Said, message: string, signal: AbortSignal) => {
    const { generation = 0 } = app.object.metadata;
    const rejected = { ...said, generation, reason: "Invalid", message } as const;
    return statuses.write(app, (previous, now) => rejectedStatus({ ...rejected, previous, now }), signal);
  };

  /** The app, if a plan can be made from its spec; otherwise the result to return. */
  const accept = async (app: App, said: Said, signal: AbortSignal): Promise<Accepted | { readonly instead: Result }> => {
    const { object } = app;
    const key = formatRequest(app.ref);
    if (!isLive(app)) {
      const selection = app.spec === undefined ? injectedPods(app.ref.name) : app.pods;
      return { app, selection, bySpec: undefined };
    }
    const { uid, generation = 0 } = object.metadata;
    if (app.spec === undefined) {
      await reject(app, said, plainTexts(app.problems).join("; "), signal);
      // Otherwise a deleted object would stay for as long as the others are refused.
      if (isHeld(app)) await letGo(app, signal);
      return { instead: {} };
    }
    if (app.spec.waitsFor !== undefined) {
      const waiting = { ...said, generation, message: app.spec.waitsFor };
      await statuses.write(app, (previous, now) => notPlacedStatus({ ...waiting, previous, now }), signal);
      return { instead: {} };
    }
    // The finalizer is added before the first proxy gets routes. A later deletion must revoke these routes.
    const isNew =
      !isHeld(app) && app.leaving.length === 0 && app.objects.every(({ status }) => status?.routeVersion === undefined);
    const begin = () => void (isNew && begun.set(key, uid));
    const held = await Promise.all(
      app.objects.map((each) => setFinalizer(client, resource, each, true, signal, each === object ? begin : undefined)),
    );
    // A spec is newer than the checked one. The watch will queue the app again.
    const checked = held.filter((each, at) => each?.metadata.generation === app.objects[at]?.metadata.generation);
    const objects = checked.filter((each) => each !== undefined);
    if (objects.length < app.objects.length) return { instead: {} };
    await letGo(app, signal);
    const current = withObjects(app, objects);
    const bySpec = await routes.tableOf(current, app.spec, signal);
    switch (bySpec) {
      case "edited":
        return { instead: { requeueAfterMs: AT_ONCE_MS } };
      case "compiling":
      case "gone":
        return { instead: {} };
      case "too-costly":
        await reject(current, said, tooCostlyMessage(namespaces.list().length), signal);
        return { instead: { requeueAfterMs: RETRY_MS } };
      default:
        return { app: current, selection: app.pods, bySpec };
    }
  };

  /**
   * Plans and publishes. Not async, so all claims are read at one moment. Returns undefined until the pods
   * are known: then nothing is planned or granted, and the list of the pods queues the app again.
   */
  const planNow = ({ app, selection, bySpec }: Accepted): Planned | undefined => {
    const { namespace, name } = app.ref;
    const { uid } = app.object.metadata;
    const key = formatRequest(app.ref);
    const known = pods.list(namespace);
    if (known === undefined) return undefined;
    const knowsAll = uid !== undefined && begun.get(key) === uid;
    const view = podViewIn(namespace, {
      apps,
      factsOf: registry.facts,
      past: knowsAll ? { ...past, isStatusLate: () => false } : past,
    });
    const own = appPods(selection, known, view);
    const common = {
      ...{ app: { namespace, name }, pods: own, factsOf: registry.facts },
      gone: goneAppPods(selection, past.gone(namespace), knowsAll, view),
    };
    const plan =
      bySpec === undefined || app.spec === undefined
        ? planDissolution({
            ...{ ...common, lockName: app.spec?.lockName },
            namespaces: namespaces.list().map(({ metadata }) => metadata.name ?? ""),
            lastLockName: lastLockName(app.object.status),
          })
        : planApp({
            ...app.spec,
            ...common,
            bySpec,
            ownersHashes: statuses.previous(app)?.ownersHashes,
            isYoung: youngAt(namespaces, clock.now()),
          });
    return { plan, pods: own, version: handOut(key, app, plan, own) };
  };

  const forget = (request: Request) => {
    const key = formatRequest(request);
    issued.delete(key); // the proxies keep their routes
    begun.delete(key);
    for (const each of [statuses, routes, restarter, injection, services]) each?.forget(request);
  };

  const webhookOf = ({ ref, spec }: App, own: readonly AppPod[]) => {
    const server = spec?.webhook;
    if (server === undefined) {
      services.forget(ref);
      return undefined;
    }
    const meshed = own.filter(({ proxy, ended, terminating }) => proxy === "own" && !ended && !terminating);
    const objects = meshed.flatMap(({ name, namespace }) => pods.get(name, namespace) ?? []);
    const problemOf = ({ metadata: { namespace = "", name = "" } }: Pod) =>
      registry.facts(podKey({ namespace, name }))?.webhookProblem ?? "";
    return webhookVerdict({ server, pods: objects, problemOf, services: services.list(ref) });
  };

  /** Returns undefined if the pods are not known yet. Then no status is written. */
  const serve = async (seen: App, said: Said, signal: AbortSignal): Promise<Result | undefined> => {
    const accepted = await accept(seen, said, signal);
    if ("instead" in accepted) return accepted.instead;
    const planned = planNow(accepted);
    if (planned === undefined) return undefined;
    const { app } = accepted;
    const { plan, version } = planned;
    const known = { pods: planned.pods, factsOf: registry.facts, plan };
    if (plan.isDissolving && isDissolved(plan, known.pods, known.factsOf) && isHeld(app)) {
      await Promise.all(app.objects.map((each) => setFinalizer(client, resource, each, false, signal)));
      log.info({ app: formatRequest(app.ref), version }, "every pod owns everything: the finalizer can be removed");
      return {};
    }
    const lockName = app.spec?.lockName ?? plan.rules.get(DEFAULT_SUBSET)?.lockName ?? ""; // a dissolution has the default subset
    const generation = app.object.metadata.generation ?? 0;
    const facts = {
      ...known,
      ...said,
      generation,
      version,
      lockName,
      describe: app.spec?.describe,
      webhook: plan.isDissolving ? undefined : webhookOf(app, planned.pods),
      labelsAfter: (before: LabelsStatus | undefined) =>
        labelsStatus(isLive(app) ? (app.spec?.labelled ?? []) : [], (of) => labels.get(of, app.ref), before),
    };
    return writeAndRestart(
      {
        ...{ app, restarter, statuses },
        facts: { ...known, app: app.ref, isPaused: app.spec?.isPaused === true, hasLock: lockName !== "" },
        makeStatus: (previous, now, restart) => appStatus({ ...facts, previous, now, restart }),
      },
      signal,
    );
  };

  return {
    async reconcile(request: Request, signal: AbortSignal): Promise<Result> {
      const seen = apps.get(request.name, request.namespace);
      if (seen === undefined) {
        forget(request);
        return {};
      }
      if (seen.ref.kind !== resource.kind) return {};
      const app = routes.newest(seen);
      if (app === undefined) return {};
      const look = injection?.look(app, conditionOf(statuses.previous(app), "InjectionReady"));
      const said = { injection: look?.verdict };
      const { generation = 0 } = app.object.metadata;
      const writeInjectionAlone = async () =>
        said.injection === undefined
          ? undefined
          : statuses.write(app, (previous, now) => injectionStatus({ ...said, generation, previous, now }), signal);
      const result = await serve(app, said, signal).catch(async (error: unknown) => {
        await writeInjectionAlone().catch(() => undefined); // the first error is the one to report
        throw error;
      });
      if (result === undefined) await writeInjectionAlone();
      return soonest(result?.requeueAfterMs, look?.againMs);
    },
  };
}

/** The facts of the status that do not come from the plan. */
type Said = Pick<StatusFacts, "injection">;

interface Accepted {
  readonly app: App;
  /** The pods that count as the app's. */
  readonly selection: PodSelection;
  /** Undefined while the app is being deleted. */
  readonly bySpec: RouteTable | undefined;
}

interface Planned {
  readonly plan: AppPlan;
  readonly pods: readonly AppPod[];
  readonly version: number;
}

function goneAppPods(app: PodSelection, gone: readonly GonePod[], knowsAll: boolean, view: PodView): GoneAppPod[] {
  return gone.flatMap(({ pod, facts }): GoneAppPod[] => {
    if (pod === undefined) return knowsAll ? [] : ["unknown"];
    const own = { ...view, appsOf: () => appsIn(facts) };
    return appPods(app, [pod], own).map((each) => ({ pod: each, facts }));
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

// The pods of an app with a refused spec: those with its proxy.
function injectedPods(name: string): PodSelection {
  const matchLabels = { [INJECTED_LABEL]: name };
  return {
    name,
    selector: { matchLabels },
    selects: (labels) => labels?.[INJECTED_LABEL] === name,
    subsetOf: () => DEFAULT_SUBSET,
  };
}

const AT_ONCE_MS = 1;

function tooCostlyMessage(namespaces: number): string {
  const cost = `more than ${COMPILE_LIMIT_MS / 1000} s of computing, or a route table of more than ${MAX_TABLE_ENTRIES.toLocaleString("en-US")} entries`;
  return `spec: to apply the rules to the cluster's ${namespaces} namespaces, the manager needs ${cost}; use fewer rules, or a simpler namespaceRegex or namespaceSelector in each`;
}

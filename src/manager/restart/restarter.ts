// Plans the next restart step from the facts and the last eviction, writes it into the status, and carries it
// out. Invariant: no pod is evicted without its record in the status, nor over another manager's record, nor
// while a rollout evicts one.
import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { Clock } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import type { FactsOf } from "../../mesh/handover/proxy-facts.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Request, type Result } from "../../runtime/reconciler.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { StatusApp, StatusFeed } from "../status/status-feed.ts";
import { type Evictor, isEvicting } from "./evictor.ts";
import { planRestart, type RestartFacts, type RestartStep } from "./restart-plan.ts";
import { restartPods } from "./restart-pods.ts";
import { type RestartRecord, SETTLE_MS } from "./restart-record.ts";
import { haveAllWanted } from "./workloads.ts";

export interface RestarterOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly client: Pick<KubeClient, "request">;
  readonly evictor: Evictor;
  readonly pods: Pick<PodLists, "get">;
  readonly events: Pick<EventRecorder, "event">;
  /** Called when an eviction is answered, so that the app is planned again. */
  readonly onAnswer?: (app: Request) => void;
  /** How long the need for a restart must last before a roll begins, in milliseconds; default 20,000. */
  readonly settleMs?: number;
}

interface AppRestartFacts extends Pick<RestartFacts, "previous" | "isPaused" | "words" | "hasLock"> {
  readonly app: Request;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: Pick<AppPlan, "rulesFor" | "subsets" | "desired" | "isDissolving">;
}

type Restarter = ReturnType<typeof createRestarter>;

// A workload usually creates the new pod within milliseconds. After this time it may want no new pod.
const SHORT_MS = 10_000;
// The time for a workload that is not known, if its subset has no pod left.
const EMPTY_MS = 60_000;

export function createRestarter(options: RestarterOptions) {
  const { client, evictor, pods: store, events, clock, log, onAnswer = () => {} } = options;
  const recentRestarts = createRecentRestarts(clock);
  // A rollout may evict the same pod.
  const attemptsFor = (app: Request, uid: string) =>
    (["restart", "rollout"] as const).flatMap((by) => evictor.attemptOn(app, uid, by) ?? []);
  const endsUntilMs = (app: Request, uid: string) => Math.max(0, ...attemptsFor(app, uid).map((last) => last.endsUntilMs));

  // True if the workloads of the subset want no more pods. All their pods count, since labels may change.
  async function isEnough(facts: AppRestartFacts, record: RestartRecord, signal: AbortSignal): Promise<boolean> {
    const { app, pods, plan } = facts;
    if (!plan.subsets.includes(record.subset)) return true;
    const live = pods.filter((pod) => pod.controlled && !pod.ended && !pod.terminating);
    const objectsOf = (some: readonly AppPod[]) => some.flatMap(({ name, namespace }) => store.get(name, namespace) ?? []);
    const inSubset = objectsOf(live.filter(({ subset }) => subset === record.subset));
    const evicted = attemptsFor(app, record.uid).find(({ object }) => object !== undefined)?.object;
    const wanted = await haveAllWanted(client, [...inSubset, ...(evicted ? [evicted] : [])], objectsOf(live), signal);
    const isLong = clock.now() - Date.parse(record.since) >= EMPTY_MS;
    return wanted === "yes" || (wanted === "unknown" && inSubset.length === 0 && isLong);
  }

  /** Does not wait: a slow API server or webhook would delay the whole reconcile of the app. */
  function requestEviction(app: Request, source: KubeObject, { pod, uid, subset }: RestartRecord, signal: AbortSignal): void {
    const recent = recentRestarts.of(app);
    const why = "its subset has lost namespaces that it retains";
    evictor.evict({ app, by: "restart", source, pod: { name: pod, uid }, why }, signal).then(
      (attempt) => {
        if (attempt === undefined) return;
        if (attempt.refusal === undefined) recent.add(uid, subset);
        onAnswer(app);
      },
      (reason: unknown) => log.debug({ app: formatRequest(app), pod, reason: errorMessage(reason) }, "eviction given up"),
    );
  }

  function planFacts(facts: AppRestartFacts): RestartFacts {
    const { app, plan } = facts;
    const nowMs = clock.now();
    return {
      ...facts,
      pods: restartPods({ ...facts, isEvicted: (uid) => nowMs < endsUntilMs(app, uid) }),
      subsets: plan.subsets,
      isDissolving: plan.isDissolving,
      // If the watch shows that the pod terminates, an earlier refusal no longer counts.
      refusalOf: (uid) =>
        facts.pods.some((pod) => pod.uid === uid && pod.terminating)
          ? undefined
          : evictor.attemptOn(app, uid, "restart")?.refusal,
      settleMs: options.settleMs ?? SETTLE_MS,
      recentRestarts: recentRestarts.of(app).count,
      nowMs,
    };
  }

  return {
    /** The caller writes the record of the step into the status before it carries the step out. */
    async next(facts: AppRestartFacts, signal: AbortSignal): Promise<RestartStep> {
      const { app, previous } = facts;
      const planned = planFacts(facts);
      const step = planRestart(planned);
      if (step.kind !== "wait") return step;
      if (step.isShort === true && previous !== undefined) {
        const dueMs = Date.parse(step.record.since) + SHORT_MS - planned.nowMs;
        if (dueMs <= 0 && (await isEnough(facts, step.record, signal))) return planRestart({ ...planned, hasAllWanted: true });
        return { ...step, recheckMs: dueMs > 0 ? dueMs : SHORT_MS };
      }
      const believedMs = endsUntilMs(app, step.record.uid) - planned.nowMs;
      return believedMs > 0 ? { ...step, recheckMs: believedMs } : step;
    },
    /**
     * Returns when to plan again, before an eviction is answered, which `onAnswer` reports.
     * @param app with the source object, for its events
     * @param signal aborts the eviction even after the return
     */
    carryOut(
      { ref, object }: { readonly ref: Request; readonly object: KubeObject },
      step: RestartStep,
      signal: AbortSignal,
    ): Result {
      if (step.finished !== undefined) {
        const { pod, subset, left } = step.finished;
        const owner = ownerText({ kind: "subset", subset });
        const message = `restarted pod ${pod} of ${owner}, which retained namespaces that its subset has lost; ${left} left`;
        events.event(object, "Normal", "RestartedPod", message);
      }
      if (step.kind === "evict") requestEviction(ref, object, step.record, signal);
      if (step.kind === "wait" && step.recheckMs !== undefined) return { requeueAfterMs: step.recheckMs };
      return {};
    },
    forget(app: Request): void {
      recentRestarts.forget(app);
      evictor.forget(app);
    },
  };
}

const RECENT_MS = 1_800_000;

function createRecentRestarts(clock: Pick<Clock, "now">) {
  const byApp = new Map<string, Map<string, { readonly subset: string; readonly atMs: number }>>();
  return {
    of(app: Request) {
      const pods = byApp.get(formatRequest(app)) ?? new Map<string, { readonly subset: string; readonly atMs: number }>();
      byApp.set(formatRequest(app), pods);
      return {
        add: (uid: string, subset: string) => pods.set(uid, { subset, atMs: clock.now() }),
        count(ofSubset: string): number {
          for (const [uid, { atMs }] of pods) {
            if (clock.now() - atMs >= RECENT_MS) pods.delete(uid);
          }
          return [...pods.values()].filter(({ subset }) => subset === ofSubset).length;
        },
      };
    },
    forget: (app: Request) => byApp.delete(formatRequest(app)),
  };
}

interface RestartTurn {
  readonly app: StatusApp;
  readonly facts: Omit<AppRestartFacts, "previous">;
  readonly restarter: Restarter;
  readonly statuses: StatusFeed;
  readonly makeStatus: (previous: AppStatus | undefined, now: string, restart: RestartStatus | undefined) => AppStatus;
}

// Enough for the watch to bring the record of the other manager, or for the rollout to evict its pod.
const AGAIN_MS = 1_000;

export async function writeAndRestart(turn: RestartTurn, signal: AbortSignal): Promise<Result> {
  const { app, restarter, statuses, makeStatus } = turn;
  const before = statuses.previous(app)?.restart;
  const step = await restarter.next({ ...turn.facts, previous: before }, signal);
  const record = step.kind === "none" ? undefined : step.record;
  let isOurs = true;
  const make = (previous: AppStatus | undefined, now: string) => {
    isOurs = isSame(previous?.restart, before) && !(step.kind === "evict" && isEvicting(previous, "rollout"));
    return makeStatus(previous, now, isOurs ? record : previous?.restart);
  };
  const { isWritten, requeueAfterMs } = await statuses.write(app, make, signal);
  if (!isWritten) return soonest(requeueAfterMs); // the newer object is reconciled anyway
  if (!isOurs) return soonest(requeueAfterMs, AGAIN_MS);
  return soonest(requeueAfterMs, restarter.carryOut(app, step, signal).requeueAfterMs);
}

function isSame(a: RestartStatus | undefined, b: RestartStatus | undefined): boolean {
  return a?.uid === b?.uid && a?.expected === b?.expected && a?.reason === b?.reason;
}

export function soonest(...times: (number | undefined)[]): Result {
  const dueMs = times.filter((ms) => ms !== undefined);
  return dueMs.length === 0 ? {} : { requeueAfterMs: Math.min(...dueMs) };
}

// Plans the next restart step from the facts and the API server's last answer, and carries it out. Called by
// write-and-restart.ts, which writes the step's record in between. Invariant: only the leader requests an
// eviction, and only after its record is in the status. A replica without the memory of this module requests
// the eviction again.
import { type Clock, type Random, systemRandom } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { ownerText } from "../../route/table.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Request, type Result } from "../../runtime/reconciler.ts";
import type { AppPod } from "../facts/app-pods.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";
import type { AppPlan } from "../plan/plan-app.ts";
import { type Eviction, evict } from "./evict.ts";
import { recordEviction } from "./eviction-events.ts";
import { refusalBy } from "./refusal.ts";
import { planRestart, type RestartFacts, type RestartStep } from "./restart-plan.ts";
import { restartPods } from "./restart-pods.ts";
import type { Refusal, RestartRecord } from "./restart-record.ts";
import { RECENT_MS, SETTLE_MS } from "./settling.ts";
import { haveAllWanted } from "./workloads.ts";

export interface RestarterOptions {
  readonly client: Pick<KubeClient, "createSubresource" | "request">;
  readonly pods: Pick<PodLists, "get">;
  readonly events: Pick<EventRecorder, "event">;
  /** True if this replica leads at this moment; default: it leads. */
  readonly isLeader?: () => boolean;
  /** Called after the answer to an eviction, so that the caller plans again. */
  readonly onAnswer?: (app: Request) => void;
  /** How long the need for a restart must last before a roll begins, in milliseconds; default 20,000. */
  readonly settleMs?: number;
  readonly clock: Clock;
  readonly random?: Random;
  readonly log: Logger;
}

export interface AppRestartFacts {
  readonly app: Request;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: Pick<AppPlan, "rulesFor" | "subsets" | "desired" | "isDissolving">;
  /** The last written `status.restart`. */
  readonly previous: RestartRecord | undefined;
  readonly isPaused: boolean;
  readonly hasLock: boolean;
}

export interface Restarter {
  /** The next step. The caller writes its record into the status before it carries the step out. */
  next(facts: AppRestartFacts, signal: AbortSignal): Promise<RestartStep>;
  /**
   * Carries the step out, and returns when to plan again. Does not wait for the answer to an eviction:
   * `onAnswer` reports it.
   * @param app with the source object, for its events; @param signal aborts the eviction also after the
   * return
   */
  carryOut(app: { readonly ref: Request; readonly object: KubeObject }, step: RestartStep, signal: AbortSignal): Result;
  /** Call when the app is gone. */
  forget(app: Request): void;
}

/** The answer of the API server to the last eviction of an app. */
interface Answer {
  readonly uid: string;
  /** The pod at that time, if it was known. Its owner reference names the workload. */
  readonly object: KubeObject | undefined;
  /** Until this wall time the pod counts as terminating; 0 if it does not. */
  readonly endsUntilMs: number;
  /** Undefined if the eviction was accepted. */
  readonly refusal: Refusal | undefined;
  readonly attempts: number;
}

interface Memory {
  answer?: Answer;
  /** The recently evicted pods, by uid. */
  readonly evicted: Map<string, { readonly subset: string; readonly atMs: number }>;
}

// The watch usually shows within a second that an evicted pod terminates. If it shows nothing in this time,
// the pod does not terminate.
const BELIEVED_MS = 10_000;
// A workload usually creates the new pod within milliseconds. If the pod is missing after this time, the
// workload may not want it.
const SHORT_MS = 10_000;
// If a subset has no pod left and its workload is not known, a slow workload gets more time.
const EMPTY_MS = 60_000;

export function createRestarter(options: RestarterOptions): Restarter {
  const { client, pods: store, events, clock, random = systemRandom, log, isLeader = () => true, onAnswer = () => {} } = options;
  const memories = new Map<string, Memory>();
  const memoryOf = (app: Request): Memory => {
    const memory = memories.get(formatRequest(app)) ?? { evicted: new Map() };
    memories.set(formatRequest(app), memory);
    return memory;
  };

  // True if the workloads of the subset's pods want no more pods. All their pods count, in every subset,
  // because users may change labels.
  async function isEnough(facts: AppRestartFacts, record: RestartRecord, signal: AbortSignal): Promise<boolean> {
    const { app, pods, plan } = facts;
    if (!plan.subsets.includes(record.subset)) return true;
    const live = pods.filter((pod) => pod.controlled && !pod.ended && !pod.terminating);
    const objectsOf = (some: readonly AppPod[]) => some.flatMap(({ name, namespace }) => store.get(name, namespace) ?? []);
    const inSubset = objectsOf(live.filter(({ subset }) => subset === record.subset));
    const { answer } = memoryOf(app);
    const evicted = answer?.uid === record.uid && answer.object !== undefined ? [answer.object] : [];
    const wanted = await haveAllWanted(client, [...inSubset, ...evicted], objectsOf(live), signal);
    const isLong = clock.now() - Date.parse(record.since) >= EMPTY_MS;
    return wanted === "yes" || (wanted === "unknown" && inSubset.length === 0 && isLong);
  }

  /**
   * Requests the eviction without waiting: a slow API server or webhook would delay the whole reconcile of
   * the app.
   */
  function ask(app: Request, source: KubeObject, { pod, uid, subset }: RestartRecord, signal: AbortSignal): void {
    // The process may have been stopped since the record was written, and may have lost the lease meanwhile.
    if (!isLeader()) return;
    const { namespace } = app;
    const memory = memoryOf(app);
    const before = memory.answer?.uid === uid ? memory.answer : undefined;
    const known = { uid, object: store.get(pod, namespace) ?? before?.object, attempts: before?.attempts ?? 0 };
    memory.answer = { ...known, refusal: before?.refusal, endsUntilMs: clock.now() + BELIEVED_MS };
    evict(client, { namespace, name: pod, uid }, signal).then(
      (eviction) => {
        const fields = { app: formatRequest(app), pod };
        memory.answer = { ...known, ...answerTo(eviction, known.attempts) };
        const { refusal } = memory.answer;
        if (refusal === undefined) {
          memory.evicted.set(uid, { subset, atMs: clock.now() });
          log.info({ ...fields, eviction: eviction.kind }, "pod evicted");
          if (known.object !== undefined && eviction.kind === "accepted")
            recordEviction(events, source, known.object, "its subset has lost namespaces that it retains");
        } else if (before?.refusal?.reason !== refusal.reason) {
          log.warn({ ...fields, reason: refusal.reason, message: refusal.message }, "eviction refused");
        }
        onAnswer(app);
      },
      (reason: unknown) => log.debug({ app: formatRequest(app), pod, reason: errorMessage(reason) }, "eviction given up"),
    );
  }

  function answerTo(eviction: Eviction, attempts: number): Pick<Answer, "refusal" | "endsUntilMs" | "attempts"> {
    const nowMs = clock.now();
    const refusal = refusalBy(eviction, attempts, nowMs, random);
    if (refusal === undefined) return { refusal, endsUntilMs: nowMs + BELIEVED_MS, attempts };
    return { refusal, endsUntilMs: eviction.kind === "unknown" ? refusal.retryAtMs : 0, attempts: attempts + 1 };
  }

  function planFacts(facts: AppRestartFacts, { answer, evicted }: Memory): RestartFacts {
    const { plan } = facts;
    const nowMs = clock.now();
    for (const [uid, { atMs }] of evicted) if (nowMs - atMs >= RECENT_MS) evicted.delete(uid);
    return {
      ...facts,
      pods: restartPods({ ...facts, isEvicted: (uid) => uid === answer?.uid && nowMs < answer.endsUntilMs }),
      subsets: plan.subsets,
      isDissolving: plan.isDissolving,
      // If the watch shows that the pod terminates, an earlier refusal no longer counts.
      refusalOf: (uid) =>
        uid === answer?.uid && !facts.pods.some((pod) => pod.uid === uid && pod.terminating) ? answer.refusal : undefined,
      settleMs: options.settleMs ?? SETTLE_MS,
      recentRestarts: (subset) => [...evicted.values()].filter((each) => each.subset === subset).length,
      nowMs,
    };
  }

  return {
    async next(facts, signal) {
      const { app, pods, previous } = facts;
      const memory = memoryOf(app);
      const { answer } = memory;
      const known = planFacts(facts, memory);
      if (answer !== undefined && previous?.uid !== answer.uid && !pods.some(({ uid }) => uid === answer.uid))
        delete memory.answer;
      const step = planRestart(known);
      if (step.kind !== "wait") return step;
      if (step.isShort === true && previous !== undefined) {
        const dueMs = Date.parse(step.record.since) + SHORT_MS - known.nowMs;
        if (dueMs <= 0 && (await isEnough(facts, step.record, signal))) return planRestart({ ...known, hasAllWanted: true });
        return { ...step, recheckMs: dueMs > 0 ? dueMs : SHORT_MS };
      }
      const believedMs = answer?.uid === step.record.uid ? answer.endsUntilMs - known.nowMs : 0;
      return believedMs > 0 ? { ...step, recheckMs: believedMs } : step;
    },
    carryOut({ ref, object }, step, signal) {
      if (step.finished !== undefined) {
        const { pod, subset, left } = step.finished;
        const owner = ownerText({ kind: "subset", subset });
        const message = `restarted pod ${pod} of ${owner}, which retained namespaces that its subset has lost; ${left} left`;
        events.event(object, "Normal", "RestartedPod", message);
      }
      if (step.kind === "evict") ask(ref, object, step.record, signal);
      if (step.kind === "wait" && step.recheckMs !== undefined) return { requeueAfterMs: step.recheckMs };
      return {};
    },
    forget: (app) => memories.delete(formatRequest(app)),
  };
}

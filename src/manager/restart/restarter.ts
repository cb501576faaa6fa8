// Carries the restart plan out: plans from facts and from what the API server answered last, evicts, tells the result. Called by
// the reconciler of apps, which writes the step's record in between. Invariant: an eviction is asked for only after its record
// is in the status, and by a replica that leads. The memory here is a shortcut only: who has none asks again.
import { backoffMs } from "../../base/backoff.ts";
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
import { planRestart, type RestartFacts, type RestartStep } from "./restart-plan.ts";
import { restartPods } from "./restart-pods.ts";
import type { Refusal, RestartRecord } from "./restart-record.ts";
import { RECENT_MS, SETTLE_MS } from "./settling.ts";
import { haveAllWanted } from "./workloads.ts";

export interface RestarterOptions {
  readonly client: Pick<KubeClient, "createSubresource" | "request">;
  readonly pods: Pick<PodLists, "get">;
  readonly events: Pick<EventRecorder, "event">;
  /** Whether this replica leads at this very moment; default: it does. */
  readonly isLeader?: () => boolean;
  /** An eviction was answered: there is something to plan by. */
  readonly onAnswer?: (app: Request) => void;
  /** How long the need has to last before a roll begins, in milliseconds; default 20,000. */
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
  /** `status.restart` as it was written last. */
  readonly previous: RestartRecord | undefined;
  readonly isPaused: boolean;
  readonly hasLock: boolean;
}

export interface Restarter {
  /** What comes next. Its record has to be in the status before it is carried out. */
  next(facts: AppRestartFacts, signal: AbortSignal): Promise<RestartStep>;
  /**
   * Carries the step out and says when to look again; whether an eviction is accepted comes by `onAnswer`.
   * @param object the source object, for its events; @param signal is heeded also after the return
   */
  carryOut(object: KubeObject, step: RestartStep, signal: AbortSignal): Result;
  /** The app is gone. */
  forget(app: Request): void;
}

/** What the API server answered to the last eviction of an app. */
interface Answer {
  readonly uid: string;
  /** As it was then, if it was known: it tells which workload made it. */
  readonly object: KubeObject | undefined;
  /** The pod is taken for an ending one till then, in wall time; 0: it is not. */
  readonly endsUntilMs: number;
  /** Undefined: it was accepted. */
  readonly refusal: Refusal | undefined;
  readonly attempts: number;
}

interface Memory {
  answer?: Answer;
  /** The pods that were evicted lately, by uid. */
  readonly evicted: Map<string, { readonly subset: string; readonly atMs: number }>;
}

const RETRY = { baseMs: 1_000, maxMs: 15_000 };
// The watch usually shows the end of a pod within a second. An end that it has not shown by then has not happened.
const BELIEVED_MS = 10_000;
const DOUBTED_MS = 5_000;
// A new pod is made within milliseconds; when it is still missing after this time, the workload may not want it.
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

  // The workloads that made the subset's pods want no more. They count in whichever subset they are: labels change by hand.
  async function isEnough(facts: AppRestartFacts, record: RestartRecord, signal: AbortSignal): Promise<boolean> {
    const { app, pods, plan } = facts;
    if (!plan.subsets.includes(record.subset)) return true;
    const live = pods.filter((pod) => pod.controlled && !pod.ended && !pod.terminating);
    const objectsOf = (some: readonly AppPod[]) => some.flatMap(({ name, namespace }) => store.get(name, namespace) ?? []);
    const inSubset = objectsOf(live.filter(({ subset }) => subset === record.subset));
    const { answer } = memoryOf(app);
    const evicted = answer?.uid === record.uid && answer.object !== undefined ? [answer.object] : [];
    const verdict = await haveAllWanted(client, [...inSubset, ...evicted], objectsOf(live), signal);
    const isLong = clock.now() - Date.parse(record.since) >= EMPTY_MS;
    return verdict === "yes" || (verdict === "unknown" && inSubset.length === 0 && isLong);
  }

  /** Asks beside the reconcile, which an API server or a webhook that is slow would hold up, and with it all else of the app. */
  function ask(app: Request, { pod, uid, subset }: RestartRecord, signal: AbortSignal): void {
    // A process that was stopped since the record was written wakes up here.
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
    if (eviction.kind === "accepted" || eviction.kind === "gone") {
      return { refusal: undefined, endsUntilMs: nowMs + BELIEVED_MS, attempts };
    }
    const isUnknown = eviction.kind === "unknown";
    const leastMs = isUnknown ? DOUBTED_MS : (eviction.retryAfterMs ?? 0);
    const retryAtMs = nowMs + Math.max(leastMs, backoffMs(attempts, RETRY, random));
    const reason = isUnknown ? "EvictionFailed" : eviction.reason;
    const refusal = { reason, message: eviction.message, retryAtMs } as const;
    return { refusal, endsUntilMs: isUnknown ? retryAtMs : 0, attempts: attempts + 1 };
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
      // Of one that is seen to end, it does not matter what was answered.
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
    carryOut(object, step, signal) {
      if (step.finished !== undefined) {
        const { pod, subset, left } = step.finished;
        const whose = ownerText({ kind: "subset", subset });
        const message = `restarted pod ${pod} of ${whose}, which retained namespaces that its subset has lost; ${left} left`;
        events.event(object, "Normal", "RestartedPod", message);
      }
      const { namespace = "", name = "" } = object.metadata;
      if (step.kind === "evict") ask({ namespace, name }, step.record, signal);
      if (step.kind === "wait" && step.recheckMs !== undefined) return { requeueAfterMs: step.recheckMs };
      return {};
    },
    forget: (app) => memories.delete(formatRequest(app)),
  };
}

// Plans the restarts of an app, level-based: the pod to evict next, or the reason to wait. Pure. One pod
// restarts at a time, subset by subset, leaders last. The next pod follows only when the previous one is gone
// and as many pods are ready as before. A new leader continues from the record; see restart-record.ts.
import type { StatusFacts } from "../status/facts.ts";
import type { Refusal } from "./evictor.ts";
import { givenUpText, LEADER_UNKNOWN_MS, restartBlocker, stateText, subsetName } from "./restart-blocker.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";
import {
  countReady,
  type RestartReason,
  type RestartRecord,
  type RollState,
  type RollStateFacts,
  rollStateOf,
  settleMs,
} from "./restart-record.ts";

/**
 * The replacement of a restarted pod is waited for this long, if none of its containers runs or it is not even
 * made. It is long, because the next pod may find no node either.
 */
const REPLACEMENT_MS = 1_800_000;

export interface RestartFacts extends RollStateFacts {
  readonly isPaused: boolean;
  readonly words: Pick<StatusFacts["words"], "pausedField">;
  readonly isDissolving: boolean;
  readonly hasLock: boolean;
  /** The refusal of the last eviction of the pod with this uid, or a missing answer. */
  readonly refusalOf: (uid: string) => Refusal | undefined;
  readonly settleMs: number;
  readonly recentRestarts: (subset: string) => number;
  readonly nowMs: number;
}

export type RestartStep = {
  /** The restart that has ended before this step. */
  readonly finished?: RestartRecord;
} & (
  | { readonly kind: "none" }
  /** Write the record, then evict its pod. */
  | { readonly kind: "evict"; readonly record: RestartRecord }
  | {
      readonly kind: "wait";
      readonly record: RestartRecord;
      /** The time until the next plan; absent if a watch shows the end of the wait. */
      readonly recheckMs?: number;
      /** Fewer pods are ready than before, and none is starting, so the workloads have to be read. */
      readonly isShort?: boolean;
    }
);

type Draft = Omit<RestartRecord, "since" | "reason"> & { readonly reason: RestartReason };

export function planRestart(facts: RestartFacts): RestartStep {
  if (facts.isDissolving) return { kind: "none" };
  const left = facts.pods.filter(needsRestart);
  const roll = rollStateOf(facts);
  switch (roll.kind) {
    case "leaving": {
      const { record } = roll;
      const { reason, message } = facts.refusalOf(record.uid) ?? {
        reason: "Evicting",
        message: `pod ${record.pod} is evicted and has not ended yet`,
      };
      return { kind: "wait", record: dated(facts, { ...record, left: left.length + 1, reason, message }) };
    }
    case "short":
      return shortOf(facts, roll.record, left.length) ?? planNext(facts, { kind: "none" }, left);
    case "done":
      return { finished: { ...roll.record, left: left.length }, ...planNext(facts, roll, left) };
    case "asked":
    case "none":
      return planNext(facts, roll, left);
    default:
      return roll satisfies never;
  }
}

/** Undefined if nothing waits any longer. */
function shortOf(facts: RestartFacts, previous: RestartRecord, left: number): RestartStep | undefined {
  const { pods, nowMs } = facts;
  const { pod, subset, expected } = previous;
  const unreadyPods = pods.filter((other) => other.subset === subset && !other.ended && (!other.ready || other.terminating));
  const [unready] = unreadyPods;
  const cause = unready === undefined ? "no new pod was made yet" : stateText(unready);
  const message = `pod ${pod} is gone and ${countReady(pods, subset)} of ${expected} pods of ${subsetName(subset)} are ready: ${cause}`;
  const record = dated(facts, { ...previous, left, reason: "NotReady", message });
  const wait = { kind: "wait", record, isShort: unready === undefined } as const;
  if (unreadyPods.some(({ neverRanSinceMs }) => neverRanSinceMs === undefined)) return wait;
  const recheckMs = Date.parse(record.since) + REPLACEMENT_MS - nowMs;
  return recheckMs > 0 ? { ...wait, recheckMs } : undefined;
}

function planNext(facts: RestartFacts, roll: RollState, left: readonly RestartPod[]): RestartStep {
  const { pods, subsets, previous, nowMs } = facts;
  const isAsked = roll.kind === "asked";
  const next = isAsked ? roll.pod : orderPods(left, subsets, previous?.subset)[0];
  if (next === undefined) return { kind: "none" };
  const { subset, name: pod, uid } = next;
  const draft = { subset, pod, uid, left: left.length };
  // The eviction may already have been requested, so `expected` stays even if the pod has to wait now.
  const kept = isAsked && previous?.expected !== undefined ? { ...draft, expected: previous.expected } : draft;
  if (facts.isPaused) {
    const wait = left.length === 1 ? "1 pod waits for its restart" : `${left.length} pods wait for their restart`;
    const message = `${wait}: set ${facts.words.pausedField} to false to go on`;
    return { kind: "wait", record: dated(facts, { ...kept, reason: "Paused", message }) };
  }
  const isSettled = isAsked && previous?.reason !== "Paused" && previous?.reason !== "Settling";
  const settling = isSettled ? undefined : settlingOf(facts, roll, kept);
  if (settling !== undefined) return settling;
  const blocker = restartBlocker(facts, next, left, isAsked);
  if (blocker !== undefined) {
    const { endsMs, ...why } = blocker;
    const record = dated(facts, { ...kept, ...why });
    if (endsMs === undefined && why.reason !== "LeaderUnknown") return { kind: "wait", record };
    const recheckMs = (endsMs ?? Date.parse(record.since) + LEADER_UNKNOWN_MS) - nowMs;
    if (recheckMs > 0) return { kind: "wait", record, recheckMs };
  }
  return askFor(facts, { ...draft, expected: countReady(pods, subset) });
}

function settlingOf(facts: RestartFacts, { kind }: RollState, draft: Omit<Draft, "reason">): RestartStep | undefined {
  const { pods, previous, recentRestarts, nowMs } = facts;
  const { subset, pod } = draft;
  const size = pods.filter((other) => other.subset === subset && other.controlled && !other.ended).length;
  const lastsMs = settleMs(facts.settleMs, {
    previous,
    isFinished: kind === "done",
    subset,
    size,
    recent: recentRestarts(subset),
  });
  const message = `pod ${pod} waits for its restart: the routes must stay unchanged for ${lastsMs / 1_000} s first`;
  const record = dated(facts, { ...draft, reason: "Settling", message });
  const recheckMs = Date.parse(record.since) + lastsMs - nowMs;
  return recheckMs > 0 ? { kind: "wait", record, recheckMs } : undefined;
}

function askFor(facts: RestartFacts, draft: Omit<Draft, "reason">): RestartStep {
  const { pod, uid, subset } = draft;
  const refusal = facts.refusalOf(uid);
  if (refusal === undefined) {
    const message = `pod ${pod} is being evicted: it retains namespaces that ${subsetName(subset)} has lost${givenUpText(facts)}`;
    return { kind: "evict", record: dated(facts, { ...draft, reason: "Evicting", message }) };
  }
  const { reason, message, retryAtMs } = refusal;
  const record = dated(facts, { ...draft, reason, message });
  const recheckMs = retryAtMs - facts.nowMs;
  return recheckMs > 0 ? { kind: "wait", record, recheckMs } : { kind: "evict", record };
}

/** The record with the start time of its wait. */
function dated(facts: RestartFacts, draft: Draft): RestartRecord {
  const { previous, nowMs } = facts;
  const isSame = previous !== undefined && isSameWait(previous, draft, facts);
  return { ...draft, since: isSame ? previous.since : `${new Date(nowMs).toISOString().slice(0, 19)}Z` };
}

// Within one wait, the reason may change every few seconds (a budget, the readiness of a pod). Another wait
// begins when the eviction is accepted, or the pod is gone.
function isSameWait(before: RestartRecord, draft: Draft, { pods }: RestartFacts): boolean {
  const isOfAll = draft.reason === "Settling" || draft.reason === "Paused";
  if (before.reason === draft.reason) return before.uid === draft.uid || (isOfAll && before.subset === draft.subset);
  const wasOfAll = before.reason === "Settling" || before.reason === "Paused";
  if (isOfAll || wasOfAll || draft.reason === "LeaderUnknown" || before.uid !== draft.uid) return false;
  const isWaiting = pods.some((pod) => pod.uid === draft.uid && needsRestart(pod));
  return isWaiting && (before.expected !== undefined || before.reason === "LeaderUnknown");
}

/**
 * The current subset comes first. In a subset leaders come last, so that the lock moves once, and unready
 * pods first.
 */
function orderPods(pods: readonly RestartPod[], subsets: readonly string[], current: string | undefined): readonly RestartPod[] {
  // A subset that the spec no longer contains has index -1, so it comes before the others.
  const rank = ({ subset }: RestartPod) => (subset === current ? Number.NEGATIVE_INFINITY : subsets.indexOf(subset));
  return pods.toSorted(
    (a, b) =>
      (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) ||
      Number(a.leader) - Number(b.leader) ||
      Number(a.ready) - Number(b.ready) ||
      (a.name < b.name ? -1 : 1),
  );
}

// The restart in order, level-based: which pod of an app is evicted next, or what it waits for. Pure function of (pods, the
// record in the status, now). One pod at a time in an app, one subset after the other, leaders last, and the next only when the
// last is gone and as many pods are ready as before.
//
// A record with `expected` stands for an eviction that was, or was about to be, asked for: as long as its pod lives and needs a
// restart, no other is asked for, whatever the order says by now. One without it only says what is waited for, and has no weight.
// So a manager that takes over goes on where the last one stopped. See restart-record.ts for the states.
import { ownerText } from "../../route/table.ts";
import { blockerOf } from "./blocker.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";
import {
  countReady,
  type Refusal,
  type RestartReason,
  type RestartRecord,
  type RollState,
  rollStateOf,
} from "./restart-record.ts";
import { settleMs } from "./settling.ts";

export interface RestartFacts {
  readonly pods: readonly RestartPod[];
  /** In the order of the spec. */
  readonly subsets: readonly string[];
  /** `status.restart` as it was written last. */
  readonly previous: RestartRecord | undefined;
  readonly isPaused: boolean;
  readonly isDissolving: boolean;
  /** The operator elects leaders. */
  readonly hasLock: boolean;
  /** How the API server refused the last eviction of the pod with this uid, or did not answer. */
  readonly refusalOf: (uid: string) => Refusal | undefined;
  /** How long the need has to last before a first roll begins; 0: not at all. */
  readonly settleMs: number;
  /** How many pods of the subset were restarted lately. */
  readonly recentRestarts: (subset: string) => number;
  /** The workloads of the subset have all the pods that they ask for, also if those are fewer than there were; asked for when short. */
  readonly hasAllWanted?: boolean;
  readonly nowMs: number;
}

export type RestartStep = {
  /** The restart that is over with this step. */
  readonly finished?: RestartRecord;
} & (
  | { readonly kind: "none" }
  /** Write the record, then evict its pod. */
  | { readonly kind: "evict"; readonly record: RestartRecord }
  | {
      readonly kind: "wait";
      readonly record: RestartRecord;
      /** Look again after this time; absent: what is waited for shows itself. */
      readonly recheckMs?: number;
      /** Nothing is on its way, and yet fewer pods are ready than before: worth asking what the workloads want. */
      readonly isShort?: boolean;
    }
);

type Draft = Omit<RestartRecord, "since" | "reason"> & { readonly reason: RestartReason };

// A leader renews its lock every few seconds, and the proxy tells when it does.
const LEADER_UNKNOWN_MS = 30_000;

/** The next step of an app. */
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
      return shortOf(facts, roll.record, left.length);
    case "done":
      return { finished: { ...roll.record, left: left.length }, ...planNext(facts, roll, left) };
    case "asked":
    case "none":
      return planNext(facts, roll, left);
    default:
      return roll satisfies never;
  }
}

function shortOf(facts: RestartFacts, previous: RestartRecord, left: number): RestartStep {
  const { pods } = facts;
  const { pod, subset, expected } = previous;
  const unready = pods.find((other) => other.subset === subset && !other.ended && (!other.ready || other.terminating));
  const cause = unready === undefined ? "no new pod was made yet" : `pod ${unready.name} is not ready`;
  const message = `pod ${pod} is gone and ${countReady(pods, subset)} of ${expected} pods of ${nameOf(subset)} are ready: ${cause}`;
  const record = dated(facts, { ...previous, left, reason: "NotReady", message });
  return { kind: "wait", record, isShort: unready === undefined };
}

function planNext(facts: RestartFacts, roll: RollState, left: readonly RestartPod[]): RestartStep {
  const { pods, subsets, previous, nowMs } = facts;
  const isAsked = roll.kind === "asked";
  const next = isAsked ? roll.pod : orderPods(left, subsets, previous?.subset)[0];
  if (next === undefined) return { kind: "none" };
  const { subset, name: pod, uid } = next;
  const draft = { subset, pod, uid, left: left.length };
  // Whatever hinders it now, its eviction may have been asked for.
  const kept = isAsked && previous?.expected !== undefined ? { ...draft, expected: previous.expected } : draft;
  if (facts.isPaused) {
    const message = `${left.length} pods wait for their restart: spec.route.paused is true`;
    return { kind: "wait", record: dated(facts, { ...kept, reason: "Paused", message }) };
  }
  const isSettled = isAsked && previous?.reason !== "Paused" && previous?.reason !== "Settling";
  const settling = isSettled ? undefined : settlingOf(facts, roll, kept);
  if (settling !== undefined) return settling;
  const blocker = blockerOf({ ...facts, isAsked }, next, left);
  if (blocker !== undefined) {
    const record = dated(facts, { ...kept, ...blocker });
    if (blocker.reason !== "LeaderUnknown") return { kind: "wait", record };
    const recheckMs = Date.parse(record.since) + LEADER_UNKNOWN_MS - nowMs;
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
  const message = `pod ${pod} waits for its restart: the routes have to stay as they are for ${lastsMs / 1_000} s first`;
  const record = dated(facts, { ...draft, reason: "Settling", message });
  const recheckMs = Date.parse(record.since) + lastsMs - nowMs;
  return recheckMs > 0 ? { kind: "wait", record, recheckMs } : undefined;
}

function askFor(facts: RestartFacts, draft: Omit<Draft, "reason">): RestartStep {
  const { pod, uid, subset } = draft;
  const refusal = facts.refusalOf(uid);
  if (refusal === undefined) {
    const message = `pod ${pod} is being evicted: it retains namespaces that ${nameOf(subset)} has lost`;
    return { kind: "evict", record: dated(facts, { ...draft, reason: "Evicting", message }) };
  }
  const { reason, message, retryAtMs } = refusal;
  const record = dated(facts, { ...draft, reason, message });
  const recheckMs = retryAtMs - facts.nowMs;
  return recheckMs > 0 ? { kind: "wait", record, recheckMs } : { kind: "evict", record };
}

/** The record with the time since which this has been so. */
function dated(facts: RestartFacts, draft: Draft): RestartRecord {
  const { previous, nowMs } = facts;
  const isSame = previous !== undefined && isSameWait(previous, draft, facts);
  return { ...draft, since: isSame ? previous.since : `${new Date(nowMs).toISOString().slice(0, 19)}Z` };
}

// What keeps a pod from being evicted may change its name every few seconds (a budget, the readiness that it is about), and is one
// wait all the same; that its eviction is accepted, or it is gone, is another.
function isSameWait(before: RestartRecord, draft: Draft, { pods }: RestartFacts): boolean {
  const isOfAll = draft.reason === "Settling" || draft.reason === "Paused";
  if (before.reason === draft.reason) return before.uid === draft.uid || (isOfAll && before.subset === draft.subset);
  if (
    isOfAll ||
    before.reason === "Paused" ||
    before.reason === "Settling" ||
    draft.reason === "LeaderUnknown" ||
    before.uid !== draft.uid
  )
    return false;
  const isStanding = pods.some((pod) => pod.uid === draft.uid && needsRestart(pod));
  return isStanding && (before.expected !== undefined || before.reason === "LeaderUnknown");
}

function nameOf(subset: string): string {
  return ownerText({ kind: "subset", subset });
}

/**
 * One subset after the other, the one that was begun first, else by the spec's order. In a subset those that do not lead before
 * those that do, so that the lock changes hands once; then what is not ready before what is; then by name.
 */
function orderPods(pods: readonly RestartPod[], subsets: readonly string[], begun: string | undefined): readonly RestartPod[] {
  // A subset that the spec knows no more comes before all that it knows.
  const rank = ({ subset }: RestartPod) => (subset === begun ? Number.NEGATIVE_INFINITY : subsets.indexOf(subset));
  return pods.toSorted(
    (a, b) =>
      (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) ||
      Number(a.leader) - Number(b.leader) ||
      Number(a.ready) - Number(b.ready) ||
      (a.name < b.name ? -1 : 1),
  );
}

// Finds the reason why the next pod of an app cannot be restarted yet. Pure. Invariant: every wait for a pod that
// has never run ends, because there may never be a node for it.
import { ownerText } from "../../mesh/ownership/words.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";
import type { RestartReason } from "./restart-record.ts";

/**
 * Leaders renew their lock every few seconds. After this time without a leader, no pod has to restart last.
 */
export const LEADER_UNKNOWN_MS = 30_000;

/**
 * A pod that has never run is waited for this long: there may be no node for it. Most other pods have started
 * sooner, also with a large image.
 */
const START_MS = 300_000;

interface BlockerFacts {
  readonly pods: readonly RestartPod[];
  readonly hasLock: boolean;
  readonly nowMs: number;
}

interface RestartBlocker {
  readonly reason: RestartReason;
  readonly message: string;
  /** When it blocks no longer; absent: when a watch shows that. */
  readonly endsMs?: number;
}

export function restartBlocker(
  { pods, hasLock, nowMs }: BlockerFacts,
  next: RestartPod,
  left: readonly RestartPod[],
  isAsked: boolean,
): RestartBlocker | undefined {
  const wait = (reason: RestartReason, why: string) => ({ reason, message: `pod ${next.name} waits for its restart: ${why}` });
  const others = pods.filter((pod) => pod !== next && pod.proxy !== "other-app" && !pod.ended);
  const unready = others.find((pod) => hinders(pod, next) && !isGivenUp(pod, nowMs));
  if (unready !== undefined) {
    const blocker = wait("NotReady", stateText(unready));
    const { neverRanSinceMs, terminating } = unready;
    return neverRanSinceMs === undefined || terminating ? blocker : { ...blocker, endsMs: neverRanSinceMs + START_MS };
  }
  const subset = [next, ...others].filter((pod) => pod.subset === next.subset && !isGivenUp(pod, nowMs));
  const silent = subset.find((pod) => pod.proxy === "own" && !pod.connected);
  if (silent !== undefined) return wait("NotReported", `the proxy of pod ${silent.name} is not connected, and may lead`);
  // The order was decided when the eviction of this pod was requested.
  const isOrdered =
    isAsked || !hasLock || subset.some(({ leader }) => leader) || left.every((pod) => pod === next || pod.subset !== next.subset);
  return isOrdered ? undefined : wait("LeaderUnknown", `no pod of ${subsetName(next.subset)} leads`);
}

// A pod that needs a restart hinders no other while it is unready. The exception is an unready leader: it
// restarts last, and ready pods wait until it is ready.
function hinders(other: RestartPod, next: RestartPod): boolean {
  if (other.terminating) return true;
  return !other.ready && (!needsRestart(other) || (other.leader && next.ready));
}

function isGivenUp({ neverRanSinceMs, terminating }: RestartPod, nowMs: number): boolean {
  return neverRanSinceMs !== undefined && !terminating && nowMs >= neverRanSinceMs + START_MS;
}

export function givenUpText({ pods, nowMs }: BlockerFacts): string {
  const pod = pods.find((each) => isGivenUp(each, nowMs));
  return pod === undefined ? "" : `; nothing waits for pod ${pod.name}, which has not started for over 5 min`;
}

export function stateText({ name, terminating, neverRanSinceMs }: RestartPod): string {
  if (terminating) return `pod ${name} is ending`;
  return `pod ${name} ${neverRanSinceMs === undefined ? "is not ready" : "has not started yet"}`;
}

export const subsetName = (subset: string) => ownerText({ kind: "subset", subset });

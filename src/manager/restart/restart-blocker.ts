// Finds the reason why the next pod cannot be evicted yet: another pod of the app is not ready, or the leader
// is not known. Pure.
import { ownerText } from "../../route/table.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";

/**
 * A leader renews its lock every few seconds, and its proxy reports the renewal. If no leader is known for
 * this time, the subset has none that could be restarted last.
 */
export const LEADER_UNKNOWN_MS = 30_000;

interface Blocker {
  readonly reason: "NotReady" | "NotReported" | "LeaderUnknown";
  readonly message: string;
}

/** The first reason against the eviction of `next`, which is one of `left`; undefined if there is none. */
export function restartBlocker(
  { pods, hasLock, isAsked }: { readonly pods: readonly RestartPod[]; readonly hasLock: boolean; readonly isAsked: boolean },
  next: RestartPod,
  left: readonly RestartPod[],
): Blocker | undefined {
  const others = pods.filter((pod) => pod !== next && pod.proxy !== "other-app" && !pod.ended);
  const unready = others.find((pod) => hinders(pod, next));
  if (unready !== undefined) {
    const state = unready.terminating ? "is ending" : "is not ready";
    return { reason: "NotReady", message: `pod ${next.name} waits for its restart: pod ${unready.name} ${state}` };
  }
  const subset = [next, ...others].filter((pod) => pod.subset === next.subset);
  const silent = subset.find((pod) => pod.proxy === "own" && !pod.connected);
  if (silent !== undefined) {
    const message = `pod ${next.name} waits for its restart: the proxy of pod ${silent.name} is not connected, and may lead`;
    return { reason: "NotReported", message };
  }
  // The order was decided when the eviction of this pod was requested.
  const isOrdered =
    isAsked || !hasLock || subset.some(({ leader }) => leader) || left.every((pod) => pod === next || pod.subset !== next.subset);
  if (isOrdered) return undefined;
  return {
    reason: "LeaderUnknown",
    message: `pod ${next.name} waits for its restart: no pod of ${ownerText({ kind: "subset", subset: next.subset })} leads`,
  };
}

// The restart of an unready pod makes no ready pod unready. So unready pods restart before ready ones, and no
// pod waits until another pod that needs a restart is ready. The exception is an unready leader: it restarts
// last, and ready pods wait until it is ready.
function hinders(other: RestartPod, next: RestartPod): boolean {
  if (other.terminating) return true;
  return !other.ready && (!needsRestart(other) || (other.leader && next.ready));
}

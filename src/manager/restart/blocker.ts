// What hinders the eviction of the next pod: other pods of the app that are not ready, or an order that is not known. Pure.
import { ownerText } from "../../route/table.ts";
import { needsRestart, type RestartPod } from "./restart-pods.ts";

export interface Blocker {
  readonly reason: "NotReady" | "NotReported" | "LeaderUnknown";
  readonly message: string;
}

/** The first of what hinders the eviction of `next`, which is one of `left`. */
export function blockerOf(
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
  // Its turn was decided when its eviction was requested.
  const isOrdered =
    isAsked || !hasLock || subset.some(({ leader }) => leader) || left.every((pod) => pod === next || pod.subset !== next.subset);
  if (isOrdered) return undefined;
  return {
    reason: "LeaderUnknown",
    message: `pod ${next.name} waits for its restart: no pod of ${ownerText({ kind: "subset", subset: next.subset })} leads`,
  };
}

// What is not ready now is not made less so by its restart: it goes before those that are ready, and does not wait for them. A
// leader goes last nevertheless, and while it is not ready the others are needed.
function hinders(other: RestartPod, next: RestartPod): boolean {
  if (other.terminating) return true;
  return !other.ready && (!needsRestart(other) || (other.leader && next.ready));
}

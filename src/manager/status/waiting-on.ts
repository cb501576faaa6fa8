// The pods for which a handover waits: one row for each pod, the longest wait first, at most eight. Pure. The
// beginning of a wait is read from the previous status, so a restart of the manager or a new reason for the
// wait does not reset it.
import { type AppStatus, MAX_WAITING_ON, type Phase, type WaitingOn } from "../../api/app-status.ts";
import type { AppPod } from "../facts/app-pods.ts";
import type { Wait } from "../plan/plan-fences.ts";
import { proxyOf, routeProblems, type StatusFacts, wholeSeconds } from "./facts.ts";
import type { WaitReason } from "./wait-text.ts";

/** A pod for which the handover waits. */
export interface Waiting {
  /** "" if its name is not known. */
  readonly pod: string;
  readonly reason: WaitReason;
  /** An example of a waiting namespace. */
  readonly namespace?: string | undefined;
  /** When the wait began; replaces the time in the previous status. */
  readonly since?: string;
}

/** The pods that still claim namespaces of other subsets, or have not reported their claims. */
export function drainingWaits(facts: StatusFacts): Waiting[] {
  const byPod = new Map<string, Waiting>();
  const pods = new Map(facts.pods.map((pod) => [pod.name, pod]));
  for (const wait of facts.plan.waits) {
    const pod = pods.get(wait.podName);
    const [namespace] = wait.namespaces;
    const before = byPod.get(wait.podName);
    if (before?.namespace !== undefined) continue;
    byPod.set(wait.podName, { pod: wait.podName, reason: before?.reason ?? reasonOf(facts, wait, pod), namespace });
  }
  return [...byPod.values()];
}

/** The pods that do not enforce their snapshot yet. */
export function syncWaits(facts: StatusFacts, pods: readonly AppPod[]): Waiting[] {
  return pods.map((pod) => ({ pod: pod.name, reason: proxyReason(facts, pod) }));
}

function reasonOf(facts: StatusFacts, { cause }: Wait, pod: AppPod | undefined): WaitReason {
  switch (cause) {
    case "no-proxy":
      return "NoProxy";
    case "unreported":
      return pod?.proxy === "other-app" ? "ForeignProxy" : "NotReported";
    case "unstarted":
      return "NotStarted";
    case "pod-gone":
    case "just-listed":
      return "PodGone";
    case "holds":
      if (pod === undefined) return "NotConnected";
      return pod.proxy === "other-app" ? "ForeignProxy" : proxyReason(facts, pod);
    default:
      return cause satisfies never;
  }
}

function proxyReason(facts: StatusFacts, pod: AppPod): WaitReason {
  const proxy = proxyOf(facts, pod);
  if (proxy === undefined) return pod.running ? "NotReported" : "NotStarted";
  if (routeProblems(proxy).length > 0) return "SnapshotRefused";
  if (!proxy.connected) return "NotConnected";
  return proxy.backlog.drainingWrites > 0 ? "WriteInFlight" : "NotAcknowledged";
}

/** The rows of the status. */
export function waitingRows({ previous, now }: StatusFacts, phase: Phase, waits: readonly Waiting[]): WaitingOn[] {
  return waits
    .map(({ pod, reason, namespace, since }) => ({
      ...(namespace === undefined ? {} : { namespace }),
      ...(pod === "" ? {} : { pod }),
      reason,
      since: since ?? sinceOf(previous, phase, pod) ?? wholeSeconds(now),
    }))
    .sort(byAge)
    .slice(0, MAX_WAITING_ON);
}

function byAge(a: WaitingOn, b: WaitingOn): number {
  if (a.since !== b.since) return a.since < b.since ? -1 : 1;
  return (a.pod ?? "") < (b.pod ?? "") ? -1 : 1;
}

function sinceOf(previous: AppStatus | undefined, phase: Phase, pod: string): string | undefined {
  const { handover } = previous ?? {};
  if (handover?.phase !== phase) return undefined;
  const rows = handover.waitingOn ?? [];
  const row = rows.find((each) => (each.pod ?? "") === pod);
  // A wait that had no place among the longest waits began at the same time as the shortest of these, or
  // later.
  return row?.since ?? (rows.length >= MAX_WAITING_ON ? rows.at(-1)?.since : undefined);
}

// The pods for which a handover waits: one row for each pod, the longest wait first, and the sentences about
// it. Pure. The beginning of a wait is read from the previous status, so a restart of the manager or a new
// reason for the wait does not reset it.
import { type AppStatus, MAX_WAITING_ON, type Phase, type WaitingOn } from "../../api/app-status.ts";
import { plainText } from "../../base/plain-text.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { Wait } from "../../mesh/handover/plan-fences.ts";
import { ageText, countSteps, proxyOf, routeProblems, type StatusFacts, wholeSeconds } from "./facts.ts";

/** Separates a wait that needs help from its remedy, in the message of Ready. */
export const REMEDY_MARK = "; to do: ";

interface Explanation {
  readonly why: string;
  readonly remedy: string;
}

const DELETE_POD = "its claim ends with the pod: delete the pod if it does not come back";

interface Details {
  readonly pod: string;
  readonly writes: number;
  readonly problems: string;
  readonly isConnected: boolean;
  readonly isUnstarted: boolean;
  readonly namespace: string;
  readonly leftNode: string | undefined;
}

/** Nobody but a person or a cloud controller knows whether the node is off. */
function forceText({ pod, namespace, leftNode }: Details): string {
  return `make sure that node ${leftNode} is off, then run: kubectl delete pod ${pod} -n ${namespace} --force`;
}

const EXPLANATIONS = {
  NotAcknowledged: () => ({ why: "its proxy has not acknowledged the change", remedy: `read the proxy's log; ${DELETE_POD}` }),
  WriteInFlight: ({ pod, writes }: Details) => ({
    why: `${countSteps(writes)} ${writes === 1 ? "write" : "writes"} in flight`,
    remedy: `a webhook or the API server delays the write; deleting pod ${pod} ends the wait`,
  }),
  NotReported: ({ isConnected }: Details) => ({
    why: isConnected ? "its proxy has not reported its claims yet" : "its proxy has not connected yet",
    remedy: `check in the log of its proxy whether it reaches the manager, and why the manager does not serve it; ${DELETE_POD}`,
  }),
  NotStarted: ({ pod, isUnstarted }: Details) => ({
    why: isUnstarted
      ? "its proxy does not start, and an earlier manager may have sent it routes"
      : "its proxy has not started, and without the app no manager could send it routes",
    remedy: `check why its containers do not start (kubectl logs ${pod} -c ctrlmesh-proxy), or delete it`,
  }),
  NotConnected: (details: Details) =>
    details.leftNode === undefined
      ? { why: "its proxy is not connected and may still write", remedy: `check that its node is reachable; ${DELETE_POD}` }
      : { why: `its node ${details.leftNode} does not answer, and it may still write`, remedy: forceText(details) },
  PodGone: () => ({
    why: "the pod was deleted before its containers were seen to end; its token is accepted for 10 s more",
    remedy: "nothing: the wait ends by itself",
  }),
  NoProxy: () => ({ why: "it carries no proxy and may write everywhere", remedy: "restart it to have it injected" }),
  ForeignProxy: () => ({
    why: "it carries the proxy of another app",
    remedy: "check that no two apps select the same pods, then restart it",
  }),
  SnapshotRefused: ({ problems }: Details) => ({
    why: `its proxy rejects its snapshot: ${problems}`,
    remedy: "restart it, so that it runs the manager's version of the proxy",
  }),
  Settling: () => ({
    why: "the routes must stay unchanged for a while first",
    remedy: "find the program that changes labels of namespaces so often",
  }),
  Evicting: (details: Details) => ({
    why: "it was evicted and has not ended",
    remedy:
      details.leftNode === undefined
        ? `check what delays its end: finalizers, a long grace period or a lost node (kubectl get pod ${details.pod} -o yaml)`
        : forceText(details),
  }),
  PodDisruptionBudget: () => ({
    why: "a PodDisruptionBudget forbids its eviction",
    remedy: "run one more replica, or allow one disruption, or delete the pod yourself",
  }),
  NotReady: () => ({
    why: "the subset has fewer ready pods than before",
    remedy: "check why they are not ready: the next pod is restarted only then",
  }),
  LeaderUnknown: () => ({ why: "no pod of the subset is known to lead", remedy: "check why its operator elects no leader" }),
  EvictionForbidden: () => ({
    why: "the manager may not evict it",
    remedy: "give the manager's role the verb create on pods/eviction, or delete the pod yourself",
  }),
  EvictionFailed: () => ({ why: "its eviction failed", remedy: "read the manager's log, or delete the pod yourself" }),
} satisfies Record<string, (details: Details) => Explanation>;

export type WaitReason = keyof typeof EXPLANATIONS;

export const WAIT_REASONS = Object.keys(EXPLANATIONS) as readonly WaitReason[];

/** For example "pilot waits for pod a, over 10 s: 1 write in flight". A short, usual wait has no cause. */
export function waitText(facts: StatusFacts, row: WaitingOn, subject = row.namespace): string {
  const age = ageText(row.since, facts.now);
  const isOrdinary = age === "" && row.reason === "NotAcknowledged";
  const pod = row.pod === undefined ? "pods that were deleted before this manager saw them" : `pod ${row.pod}`;
  const whom = `${subject === undefined ? "waiting" : `${subject} waits`} for ${pod}${age === "" ? "" : `, ${age}`}`;
  return isOrdinary ? whom : `${whom}: ${explanationOf(facts, row).why}`;
}

export function remedyText(facts: StatusFacts, row: WaitingOn): string {
  return explanationOf(facts, row).remedy;
}

function explanationOf(facts: StatusFacts, { pod = "", reason }: WaitingOn): Explanation {
  const waitingPod = facts.pods.find(({ name }) => name === pod);
  const proxy = waitingPod && proxyOf(facts, waitingPod);
  const explain: ((details: Details) => Explanation) | undefined = EXPLANATIONS[reason as WaitReason];
  const details = {
    pod,
    writes: proxy?.backlog.drainingWrites ?? 0,
    problems: proxy === undefined ? "" : plainText(routeProblems(proxy).join("; ")),
    isConnected: proxy?.connected ?? false,
    isUnstarted: waitingPod?.unstarted === true && waitingPod.running,
    namespace: waitingPod?.namespace ?? "",
    leftNode: waitingPod?.leftNode,
  };
  // The record of a later version may have another reason.
  return explain?.(details) ?? { why: reason, remedy: "" };
}

export interface Waiting {
  /** "" if its name is not known. */
  readonly pod: string;
  readonly reason: WaitReason;
  /** An example of a waiting namespace. */
  readonly namespace?: string | undefined;
  /** When the wait began; replaces the time in the previous status. */
  readonly since?: string;
}

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

export function waitingRows({ previous, now }: StatusFacts, phase: Phase, waits: readonly Waiting[]): WaitingOn[] {
  return waits
    .map(({ pod, reason, namespace, since }) => ({
      namespace,
      pod: pod === "" ? undefined : pod,
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
  // A wait without a place among the longest waits began at the same time as the shortest of these, or later.
  return row?.since ?? (rows.length >= MAX_WAITING_ON ? rows.at(-1)?.since : undefined);
}

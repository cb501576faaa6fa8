// The sentences about one wait: the pod, the duration, the cause, and what a person can do. Pure.
import type { WaitingOn } from "../../api/app-status.ts";
import { plainText } from "../../base/plain-text.ts";
import { ageText, countSteps } from "./ages.ts";
import { proxyOf, routeProblems, type StatusFacts } from "./facts.ts";

/** The reasons for which a handover or a restart waits. */
export const WAIT_REASONS = [
  "NotAcknowledged",
  "WriteInFlight",
  "NotReported",
  "NotStarted",
  "NotConnected",
  "PodGone",
  "NoProxy",
  "ForeignProxy",
  "SnapshotRefused",
  "Settling",
  "Evicting",
  "PodDisruptionBudget",
  "NotReady",
  "LeaderUnknown",
  "EvictionForbidden",
  "EvictionFailed",
] as const;

export type WaitReason = (typeof WAIT_REASONS)[number];

/** Separates a wait that needs help from its remedy, in the message of Ready. */
export const REMEDY_MARK = "; to do: ";

interface Explanation {
  readonly why: string;
  readonly remedy: string;
}

const GO = "its claim ends with the pod: delete the pod if it does not come back";

interface Details {
  readonly writes: number;
  readonly problems: string;
  readonly isConnected: boolean;
  /** Its operator never started, and its proxy may know routes from an earlier manager. */
  readonly isUnstarted: boolean;
}

/** Why the wait lasts, and what helps. */
function explain(reason: WaitReason, pod: string, details: Details): Explanation {
  switch (reason) {
    case "NotAcknowledged":
      return { why: "its proxy has not acknowledged the change", remedy: `read the proxy's log; ${GO}` };
    case "WriteInFlight":
      return {
        why: `${countSteps(details.writes)} ${details.writes === 1 ? "write" : "writes"} in flight`,
        remedy: `a webhook or the API server delays the write; deleting pod ${pod} ends the wait`,
      };
    case "NotReported":
      return {
        why: details.isConnected ? "its proxy has not reported its claims yet" : "its proxy has not connected yet",
        remedy: `check in the log of its proxy whether it reaches the manager, and why the manager does not serve it; ${GO}`,
      };
    case "NotStarted":
      return {
        why: details.isUnstarted
          ? "its proxy does not start, and an earlier manager may have sent it routes"
          : "its proxy has not started, and without the app no manager could send it routes",
        remedy: `check why its containers do not start (kubectl logs ${pod} -c ctrlmesh-proxy), or delete it`,
      };
    case "NotConnected":
      return { why: "its proxy is not connected and may still write", remedy: `check that its node is reachable; ${GO}` };
    case "PodGone":
      return {
        why: "the pod was deleted before its containers were seen to end; its token is accepted for 10 s more",
        remedy: "nothing: the wait ends by itself",
      };
    case "NoProxy":
      return { why: "it carries no proxy and may write everywhere", remedy: "restart it to have it injected" };
    case "ForeignProxy":
      return {
        why: "it carries the proxy of another app",
        remedy: "check that no two apps select the same pods, then restart it",
      };
    case "SnapshotRefused":
      return {
        why: `its proxy rejects its snapshot: ${details.problems}`,
        remedy: "restart it, so that it runs the manager's version of the proxy",
      };
    case "Settling":
      return {
        why: "the routes must stay unchanged for a while first",
        remedy: "find the program that changes labels of namespaces so often",
      };
    case "Evicting":
      return {
        why: "it was evicted and has not ended",
        remedy: `check what delays its end: finalizers, a long grace period or a lost node (kubectl get pod ${pod} -o yaml)`,
      };
    case "PodDisruptionBudget":
      return {
        why: "a PodDisruptionBudget forbids its eviction",
        remedy: "run one more replica, or allow one disruption, or delete the pod yourself",
      };
    case "NotReady":
      return {
        why: "the subset has fewer ready pods than before",
        remedy: "check why they are not ready: the next pod is restarted only then",
      };
    case "LeaderUnknown":
      return { why: "no pod of the subset is known to lead", remedy: "check why its operator elects no leader" };
    case "EvictionForbidden":
      return {
        why: "the manager may not evict it",
        remedy: "give the manager's role the verb create on pods/eviction, or delete the pod yourself",
      };
    case "EvictionFailed":
      return { why: "its eviction failed", remedy: "read the manager's log, or delete the pod yourself" };
    default:
      return reason satisfies never;
  }
}

/**
 * For example "pilot waits for pod a, over 10 s: 1 write in flight". A short, usual wait has no cause in its
 * text.
 */
export function waitText(facts: StatusFacts, row: WaitingOn, subject = row.namespace): string {
  const age = ageText(row.since, facts.now);
  const isOrdinary = age === "" && row.reason === "NotAcknowledged";
  const pod = row.pod === undefined ? "pods that were deleted before this manager saw them" : `pod ${row.pod}`;
  const whom = `${subject === undefined ? "waiting" : `${subject} waits`} for ${pod}${age === "" ? "" : `, ${age}`}`;
  return isOrdinary ? whom : `${whom}: ${explanationOf(facts, row).why}`;
}

/** What a person can do about the wait. */
export function remedyText(facts: StatusFacts, row: WaitingOn): string {
  return explanationOf(facts, row).remedy;
}

function explanationOf(facts: StatusFacts, { pod = "", reason }: WaitingOn): Explanation {
  const waitingPod = facts.pods.find(({ name }) => name === pod);
  const proxy = waitingPod && proxyOf(facts, waitingPod);
  const problems = proxy === undefined ? "" : plainText(routeProblems(proxy).join("; "));
  const isUnstarted = waitingPod?.unstarted === true && waitingPod.running;
  const details = { writes: proxy?.backlog.drainingWrites ?? 0, problems, isConnected: proxy?.connected ?? false, isUnstarted };
  return explain(reason as WaitReason, pod, details);
}

// The condition Ready: the spec is accepted, every pod has a proxy that is in sync, each subset that owns
// something has a ready pod, and nothing is stuck. Pure. It stays True in a healthy handover, and while
// proxies may still be connecting to a new manager.
import { PHASES } from "../../api/app-status.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { subsetText } from "../../mesh/ownership/words.ts";
import { syncText } from "./converged.ts";
import type { Counts } from "./counts.ts";
import {
  ageMs,
  barePods,
  conditionOf,
  countText,
  isSynced,
  LOST_AFTER_MS,
  proxyOf,
  STALLED_AFTER_MS,
  type StatusFacts,
  servingPods,
  subsetsByLabels,
  type Verdict,
} from "./facts.ts";
import type { Handover } from "./handover.ts";
import { REMEDY_MARK, remedyText, WAIT_REASONS, type WaitReason, waitText } from "./waits.ts";

export const READY_REASONS = [
  "InSync",
  ...PHASES,
  "ConfirmationRequired",
  "Rebuilding",
  "Invalid",
  "NotPlaced",
  "SnapshotRefused",
  "OwnershipConflict",
  ...WAIT_REASONS,
  "SubsetWithoutPods",
  "ProxiesBehind",
  "ProxyLost",
  // Of the shards of a family.
  "Serving",
  "Idle",
] as const;

type Ready = Verdict<(typeof READY_REASONS)[number]>;

interface Summary {
  readonly counts: Counts;
  readonly handover: Handover;
  readonly converged: Verdict;
  /** The faults of other conditions that come before an old wait. */
  readonly urgent: readonly Verdict[];
  /** The faults of other conditions that come after an old wait. */
  readonly others: readonly Verdict[];
}

export function readyVerdict(facts: StatusFacts, summary: Summary): Verdict {
  const { message, ...verdict } = verdictOf(facts, summary);
  return { ...verdict, message: message + (facts.refusedPods ?? "") };
}

function verdictOf(facts: StatusFacts, summary: Summary): Verdict {
  const { counts, handover, converged, urgent, others } = summary;
  const stalled = stalledWait(facts, handover, converged);
  const fault = refusedSnapshot(facts) ?? conflict(facts, counts) ?? urgent[0];
  if (fault !== undefined) return { ...fault, message: fault.message + addition(fault, stalled) };
  if (stalled !== undefined) return { status: "False", reason: stalled.reason, message: messageOf(stalled) };
  const lesserFault = others[0] ?? withoutPods(facts, counts) ?? behind(facts, counts) ?? lostProxy(facts, counts);
  if (lesserFault !== undefined) return lesserFault;
  return readyText(facts, summary);
}

function readyText(facts: StatusFacts, { counts, handover, converged }: Summary): Ready {
  const { phase } = handover.handover ?? {};
  const status = "True";
  const { reason, message } = converged;
  if (reason === "ConfirmationRequired") return { status, reason, message };
  if (phase !== undefined) return { status, reason: phase, message };
  return { status, reason: "InSync", message: syncText(facts, counts) + notStartedText(facts.pods) };
}

/** No restart or rollout waits for such a pod for ever, so nothing else says why there are fewer ready pods. */
function notStartedText(pods: StatusFacts["pods"]): string {
  const [first, ...others] = pods.filter(({ neverRanSinceMs, terminating }) => neverRanSinceMs !== undefined && !terminating);
  if (first === undefined) return "";
  return `; pod ${first.name}${others.length === 0 ? " has" : ` and ${others.length} more have`} not started yet`;
}

/** The text about an old wait in addition to another reason: only its remedy if both reasons are the same. */
function addition(fault: Verdict, stalled: Stalled | undefined): string {
  if (stalled === undefined) return "";
  return stalled.reason === fault.reason ? REMEDY_MARK + stalled.remedy : `; ${messageOf(stalled)}`;
}

function refusedSnapshot(facts: StatusFacts): Ready | undefined {
  for (const pod of facts.pods) {
    const [[type, problems] = []] = Object.entries(proxyOf(facts, pod)?.problems ?? {});
    if (problems === undefined) continue;
    const what = type === ROUTE.name ? "refused its snapshot" : `does not enforce its resource of type "${type}"`;
    return { status: "False", reason: "SnapshotRefused", message: `pod ${pod.name} ${what}: ${problems.join("; ")}` };
  }
  return undefined;
}

function conflict({ pods }: StatusFacts, { namespaces: { conflicting = 0 } }: Counts): Ready | undefined {
  const status = "False";
  const reason = "OwnershipConflict";
  const foreign = pods.find(({ proxy, ended }) => proxy === "other-app" && !ended);
  if (foreign !== undefined) {
    const { name, injectedFor } = foreign;
    const whose = injectedFor === undefined ? "a proxy of an unknown app" : `the proxy of app ${injectedFor}`;
    const message = `pod ${name} counts as one of this app and carries ${whose}: nothing new is granted beside it`;
    return { status, reason, message };
  }
  const [bare] = barePods({ pods });
  if (bare === undefined || conflicting === 0) return undefined;
  const message = `pod ${bare.name} carries no proxy and may write to ${countText(conflicting, "namespace")} that other subsets own: restart it to have it injected`;
  return { status, reason, message };
}

function withoutPods(facts: StatusFacts, { owned }: Counts): Ready | undefined {
  const [empty, ...more] = emptySubsets(facts, owned);
  if (empty === undefined) return undefined;
  const what = subsetsByLabels(facts.plan).has(empty) ? "objects by their labels" : countText(owned.get(empty) ?? 0, "namespace");
  const others = more.length === 0 ? "" : `; the same is true of ${countText(more.length, "other subset")}`;
  const pending = notStartedText(facts.pods.filter(({ subset }) => subset === empty));
  const message = `${subsetText(empty)} owns ${what} and has no ready pod, so nothing reconciles there${pending}${others}`;
  return { status: "False", reason: "SubsetWithoutPods", message };
}

/** The subsets that own something and have no ready pod. */
function emptySubsets({ plan, pods }: StatusFacts, owned: Counts["owned"]): string[] {
  const byLabels = subsetsByLabels(plan);
  const served = new Set(pods.filter(({ ready }) => ready).map(({ subset }) => subset));
  return plan.subsets.filter((name) => ((owned.get(name) ?? 0) > 0 || byLabels.has(name)) && !served.has(name));
}

/** Why a subset is not ready, judged by its own pods, for each such subset. The wait of a handover is no such reason. */
export function subsetFaults(facts: StatusFacts, counts: Counts): ReadonlyMap<string, string> {
  const emptyNames = new Set(emptySubsets(facts, counts.owned));
  const podsOf = Map.groupBy(facts.pods, ({ subset }) => subset);
  const faults = facts.plan.subsets.map((name): [string, string | undefined] => {
    const own = { ...facts, pods: podsOf.get(name) ?? [] };
    const withoutProxy = barePods(own).length > 0 ? "NotIntercepted" : undefined;
    const empty = emptyNames.has(name) ? "SubsetWithoutPods" : undefined;
    const late = [behind(own, counts, wasServing(facts, name)), lostProxy(own, counts)].find(
      (verdict) => verdict?.status === "False",
    );
    return [name, (refusedSnapshot(own) ?? conflict(own, counts))?.reason ?? withoutProxy ?? empty ?? late?.reason];
  });
  return new Map(faults.flatMap(([name, reason]) => (reason === undefined ? [] : [[name, reason]])));
}

/** A snapshot that is on its way to a connected proxy does not count as behind. */
function behind(facts: StatusFacts, counts: Counts, wasCalm = wasReady(facts)): Ready | undefined {
  const latePods = servingPods(facts).filter((pod) => {
    const proxy = proxyOf(facts, pod);
    return !isSynced(facts, pod) && !(proxy?.connected && proxy.acknowledged !== undefined && proxy.outstanding !== undefined);
  });
  const [first] = latePods;
  if (first === undefined) return undefined;
  const text = syncText(facts, counts);
  if (latePods.every((pod) => proxyOf(facts, pod) === undefined) && wasCalm) {
    return { status: "True", reason: "Rebuilding", message: `${text}; the proxy of pod ${first.name} has not connected yet` };
  }
  const message = `${text}; pod ${first.name} is ${proxyOf(facts, first)?.connected ? "behind" : "not connected"}`;
  return { status: "False", reason: "ProxiesBehind", message };
}

function wasReady(facts: StatusFacts): boolean {
  return conditionOf(facts.previous, "Ready")?.status === "True" && isPreviousRecent(facts);
}

/** The same of one subset, which another one's trouble does not change. */
function wasServing(facts: StatusFacts, subset: string): boolean {
  const before = facts.previous?.subsets?.find(({ name }) => name === subset);
  return before !== undefined && before.reason === undefined && isPreviousRecent(facts);
}

function isPreviousRecent({ previous, generation, now }: StatusFacts): boolean {
  const converged = conditionOf(previous, "Converged");
  const sinceMs = converged?.reason === "Rebuilding" ? ageMs(converged.lastTransitionTime, now) : 0;
  return conditionOf(previous, "Ready")?.observedGeneration === generation && sinceMs < LOST_AFTER_MS;
}

/** A proxy with the newest route, disconnected for so long that the next change would wait for it. */
function lostProxy(facts: StatusFacts, { proxies: { awaySince } }: Counts): Ready | undefined {
  if (awaySince === undefined || ageMs(awaySince, facts.now) < LOST_AFTER_MS) return undefined;
  const awayPods = servingPods(facts).filter((pod) => proxyOf(facts, pod)?.connected === false);
  const [first] = awayPods;
  if (first === undefined) return undefined;
  const who = first.subset === DEFAULT_SUBSET ? "" : ` of ${subsetText(first.subset)}`;
  const more = awayPods.length === 1 ? "" : `, and ${awayPods.length - 1} more`;
  const node = first.leftNode === undefined ? "" : ` on node ${first.leftNode}, which does not answer,`;
  const message = `the proxy of pod ${first.name}${who}${node} has been disconnected for over 1 min${more}: it keeps its routes, and the next change waits for it`;
  return { status: "False", reason: "ProxyLost", message };
}

interface Stalled {
  readonly reason: WaitReason;
  /** The pod, the reason and the duration, in words. */
  readonly wait: string;
  readonly remedy: string;
}

function messageOf({ wait, remedy }: Stalled): string {
  return wait + REMEDY_MARK + remedy;
}

function stalledWait(facts: StatusFacts, { handover }: Handover, converged: Verdict): Stalled | undefined {
  const [row] = handover?.waitingOn ?? [];
  if (row !== undefined && isOld(facts, row.since)) {
    const subject = row.namespace ?? (handover?.phase === "Restarting" ? "the restart" : undefined);
    return { reason: row.reason as WaitReason, wait: waitText(facts, row, subject), remedy: remedyText(facts, row) };
  }
  return converged.reason === "Rebuilding" ? silentWait(facts) : undefined;
}

/** A wait for pods that have not reported for so long that they probably never will. */
function silentWait(facts: StatusFacts): Stalled | undefined {
  const before = conditionOf(facts.previous, "Converged");
  const wait = facts.plan.waits.find(({ cause }) => cause === "unreported");
  if (wait === undefined || before?.reason !== "Rebuilding" || !isOld(facts, before.lastTransitionTime)) return undefined;
  const pod = facts.pods.find(({ name }) => name === wait.podName);
  const reason = pod?.proxy === "other-app" ? "ForeignProxy" : "NotReported";
  const row = { pod: wait.podName, reason, since: before.lastTransitionTime };
  return { reason, wait: waitText(facts, row, "the mesh"), remedy: remedyText(facts, row) };
}

function isOld({ now }: StatusFacts, since: string): boolean {
  return ageMs(since, now) >= STALLED_AFTER_MS;
}

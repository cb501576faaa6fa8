// The plan of an app that is being deleted: all its pods own everything again, in an order in which no object
// has two owners. Pure; needs no valid spec. The plan follows from what the pods enforce, not from their
// labels.
//
//   Divided => Drained     the desired table has no rules on namespaces, so a handover takes all namespaces from the other subsets.
//                          Resources that move as a whole stay: a list without them would look as if they were deleted
//   Drained => Whole       no other subset claims a namespace, so all pods join the default subset and its lock, and write once they
//                          have acquired it. Resources that move as a whole are fenced until all have joined
//   Whole => (deleted)     every live injected pod enforces the whole view or is gone, so the finalizer is removed
//
// Pods retain what they lose meanwhile, even with `onLoss: InPlace`. They own it again at the end, so no
// operator sees deletions and no pod needs a restart. The plan does not wait for pods without a proxy, which
// may write everything.
import { type AppRef, NO_CALLER_POLICY } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteRule, type RouteTable } from "../ownership/table.ts";
import type { AppFacts } from "./app-facts.ts";
import type { AppPod } from "./app-pod.ts";
import { goneClaims, isOfApp, isOver, lastSnapshot, podClaims, snapshotsOf } from "./claims.ts";
import { endingClusters, endingTables, wholeTable } from "./kept-clusters.ts";
import { planAbroad } from "./plan-abroad.ts";
import type { AppPlan } from "./plan-app.ts";
import { planFences, withFences } from "./plan-fences.ts";
import { type FactsOf, type ProxyFacts, podKey } from "./proxy-facts.ts";
import { createRules } from "./subset-rules.ts";

interface DissolutionFacts extends Pick<AppFacts, "app" | "words" | "pods" | "factsOf" | "gone" | "goneAbroad"> {
  /** Undefined if the spec is refused: the name then comes from the pods' snapshots. */
  readonly lockName: string | undefined;
  /** The name to use if no pod has reported a snapshot. */
  readonly lastLockName?: string | undefined;
  readonly namespaces: readonly string[];
}

export function planDissolution(facts: DissolutionFacts): AppPlan {
  const { app, words, namespaces, pods, factsOf, gone = [] } = facts;
  const whole = wholeTable(namespaces);
  const ours = pods.filter((pod) => !isOthers(app, pod, factsOf(podKey(pod))));
  const claims = [...podClaims(app, ours, factsOf), ...goneClaims(app, gone)];
  const claimingSubsets = claims.flatMap((claim) => (claim.kind === "table" ? [claim.subset] : []));
  const subsets = [...new Set([DEFAULT_SUBSET, ...claimingSubsets])];
  const ofWhole = planFences(whole, subsets, claims);
  const { waits } = ofWhole;
  const snapshots = ours.flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod)))).filter((each) => isOfApp(app, each));
  const abroad = planAbroad({
    owned: endingClusters(snapshots),
    subsets,
    isPaused: false,
    isComplete: true,
    claims: [...podClaims(app, ours, factsOf), ...goneClaims(app, facts.goneAbroad ?? [])],
    bySpec: endingTables(snapshots),
    snapshots: () => snapshots,
  });
  const hasClusters = abroad.waits.some(({ subset, cause }) => subset !== DEFAULT_SUBSET && cause !== "not-enforced");
  // If the subset is undefined, the pod has not reported and may claim namespaces.
  const isDrained =
    !hasClusters &&
    waits.every(({ subset, cause, namespaces: claimed }) => {
      const isOfResources = subset !== undefined && claimed.length === 0;
      return subset === DEFAULT_SUBSET || cause === "no-proxy" || isOfResources;
    });
  const desired = isDrained ? whole : drainingTable(whole, facts);
  const fences = isDrained ? ofWhole : planFences(desired, subsets, claims);
  const rules = createRules({
    common: { app, podNamespace: app.namespace, lockName: lockNameIn(facts), callers: NO_CALLER_POLICY, words },
    subsets,
    tableOf: (subset) => withFences(desired, fences, subset),
    // Also in the whole view: a pod that joins the default subset writes there only once it leads, as at home.
    clustersOf: snapshots.every(({ clusters }) => clusters === undefined) ? undefined : abroad.clustersOf,
    clusterTablesOf: abroad.tablesOf,
  });
  return {
    desired: whole,
    subsets,
    rules: rules.all,
    rulesFor(pod) {
      const from = lastSnapshot(app, factsOf(podKey(pod)));
      return rules.of(isDrained || from === undefined ? DEFAULT_SUBSET : from.subset, from);
    },
    digest: rules.digest,
    waits,
    clusterTables: abroad.clusterTables,
    clusterTableWaits: abroad.clusterTableWaits,
    kept: 0,
    needsConfirmation: false,
    isDissolving: true,
  };
}

/** Everything for the default subset, but for the rules in force on resources that move as a whole. */
function drainingTable(whole: RouteTable, { app, pods, factsOf }: DissolutionFacts): RouteTable {
  const isStaying = ({ kind }: RouteRule) => kind === "sharded" || kind === "objects" || kind === "object-limit";
  const newest = pods
    .flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod))))
    .filter((snapshot) => isOfApp(app, snapshot))
    .filter(({ table }) => table.rules.some(isStaying) || table.sharedResources.length > 0)
    .sort((a, b) => b.version - a.version)[0];
  if (newest === undefined) return whole;
  return { ...whole, rules: newest.table.rules.filter(isStaying), sharedResources: newest.table.sharedResources };
}

/** True if every live pod with the app's proxy owns everything and may enforce nothing else. */
export function isDissolved(plan: AppPlan, pods: readonly AppPod[], factsOf: FactsOf): boolean {
  const whole = plan.rules.get(DEFAULT_SUBSET);
  if (whole === undefined || undissolvedPods(plan, pods, factsOf).length > 0) return false;
  const own = pods.filter((pod) => isToDissolve(pod, factsOf));
  if (own.length === 0) return podClaims(whole.app, pods, factsOf).every(({ kind }) => kind === "everything");
  const isWhole = whole.table.rules.length === 0 && whole.table.fenced.size === 0;
  return isWhole && own.every((pod) => plan.rulesFor(pod).digest === whole.digest);
}

/** The app's pods, started or not, that may enforce another snapshot than the planned one. */
export function undissolvedPods(plan: AppPlan, pods: readonly AppPod[], factsOf: FactsOf): AppPod[] {
  return pods.filter((pod) => {
    if (!isToDissolve(pod, factsOf)) return false;
    const facts = factsOf(podKey(pod));
    if (facts === undefined || facts.mayHoldMore || facts.outstanding !== undefined || facts.inDoubt.length > 0) return true;
    return facts.acknowledged?.digest !== plan.rulesFor(pod).digest;
  });
}

function isToDissolve(pod: AppPod, factsOf: FactsOf): boolean {
  return pod.proxy === "own" && !isOver(pod, factsOf(podKey(pod)));
}

/** True if the pod's proxy enforces another app's routes, which stay unchanged. */
function isOthers(app: AppRef, pod: AppPod, facts: ProxyFacts | undefined): boolean {
  const { proxy } = pod;
  if (proxy !== "other-app" || facts === undefined || facts.mayHoldMore || facts.acknowledged === undefined) return false;
  return podClaims(app, [pod], () => facts).every(({ kind }) => kind === "everything");
}

function lockNameIn({ lockName, lastLockName = "", app, pods, factsOf }: DissolutionFacts): string {
  if (lockName !== undefined) return lockName;
  const snapshots = pods.flatMap((pod) => lastSnapshot(app, factsOf(podKey(pod))) ?? []);
  return snapshots.sort((a, b) => b.version - a.version)[0]?.lockName ?? lastLockName;
}

// The plan of an app that is being deleted: its pods get the whole view back, in an order in which nothing has two owners. Pure;
// called by the reconciler, also for an app of which the spec is bad. It follows from what the pods enforce, not from their labels.
//
//   Divided => Drained     the desired table has no rules, so everything is the default subset's, by the ordinary handover
//   Drained => Whole       once no other subset holds anything, their pods become the default subset's, under its lock: the proxy
//                          keeps them from writing until they hold it
//   Whole => (deleted)     when every live injected pod enforces that, or is gone; then the finalizer goes
//
// What a pod loses on the way it goes on showing, whatever spec.route.onLoss says: in the end it is its own again, so nobody sees
// deletions and nobody has to be restarted. A pod without a proxy has all already and is not waited for; what its subset, the
// default one, has not been granted yet waits for others alone.
import { type AppRef, NO_CALLER_POLICY } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf, ProxyFacts } from "../facts/proxy-facts.ts";
import type { AppPlan } from "./plan-app.ts";
import { planFences, withFences } from "./plan-fences.ts";
import { type GoneAppPod, goneClaims, isOver, lastSnapshot, podClaims } from "./pod-claims.ts";
import { createPodRules, rulesOf, rulesOfSubsets } from "./pod-rules.ts";

export interface DissolutionFacts {
  readonly app: AppRef;
  /** Undefined if the spec is refused: then the name comes from the snapshots of the pods, */
  readonly lockName: string | undefined;
  /** and this one if none of them has said yet what it enforces. */
  readonly lastLockName?: string | undefined;
  /** Their names. */
  readonly namespaces: readonly string[];
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  /** See AppFacts. */
  readonly gone?: readonly GoneAppPod[];
}

export function planDissolution(facts: DissolutionFacts): AppPlan {
  const { app, namespaces, pods, factsOf, gone = [] } = facts;
  const desired: RouteTable = {
    rules: [],
    classes: [[]],
    classOf: new Map(namespaces.map((name) => [name, 0])),
    sharedResources: [],
    fenced: new Set(),
  };
  const ours = pods.filter((pod) => !isOthers(app, pod, factsOf(podKey(pod))));
  const claims = [...podClaims(app, ours, factsOf), ...goneClaims(app, gone)];
  const held = claims.flatMap((claim) => (claim.kind === "table" ? [claim.subset] : []));
  const subsets = [...new Set([DEFAULT_SUBSET, ...held])];
  const fences = planFences(desired, subsets, claims);
  // The subset of a pod that has not reported is not known.
  const isDrained = fences.waits.every(({ subset, cause }) => subset === DEFAULT_SUBSET || cause === "no-proxy");
  const common = { app, podNamespace: app.namespace, lockName: lockNameIn(facts), callers: NO_CALLER_POLICY };
  const rules = rulesOfSubsets(subsets, (subset) => rulesOf({ ...common, subset, table: withFences(desired, fences, subset) }));
  const ofPods = createPodRules(rules.of, ({ subset }, table) => rulesOf({ ...common, subset, table }));
  return {
    desired,
    subsets,
    rules: rules.all,
    rulesFor(pod) {
      const from = lastSnapshot(app, factsOf(podKey(pod)));
      return ofPods.of(isDrained || from === undefined ? DEFAULT_SUBSET : from.subset, from);
    },
    digest: rules.digest,
    waits: fences.waits,
    kept: 0,
    isDissolving: true,
  };
}

/**
 * True when every live pod that carries the app's proxy enforces the whole view and nothing else; or when there is no such pod and no
 * other one enforces the app's routes: then there is nothing to bring back, whoever else is at work.
 */
export function isDissolved(plan: AppPlan, pods: readonly AppPod[], factsOf: FactsOf): boolean {
  const whole = plan.rules.get(DEFAULT_SUBSET);
  if (whole === undefined || undissolvedPods(plan, pods, factsOf).length > 0) return false;
  const own = pods.filter((pod) => isToDissolve(pod, factsOf));
  if (own.length === 0) return podClaims(whole.app, pods, factsOf).every(({ kind }) => kind === "everything");
  const isWhole = whole.table.rules.length === 0 && whole.table.fenced.size === 0;
  return isWhole && own.every((pod) => plan.rulesFor(pod).digest === whole.digest);
}

/**
 * The pods with the app's proxy that do not enforce yet what they are told, or may enforce something else. One that has not started is
 * among them: without an app its proxy would never be told anything.
 */
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

/** Its proxy enforces the routes of another app, which stay as they are. */
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

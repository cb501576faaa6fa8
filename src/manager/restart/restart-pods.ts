// The pods of an app as far as their restart needs to know them. Pure.
import type { Snapshot } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";
import type { AppPlan } from "../plan/plan-app.ts";
import { retainedBetween } from "../plan/retained.ts";

export interface RestartPod extends AppPod {
  /** Its proxy is connected. */
  readonly connected: boolean;
  /** It is known to hold the operator's lock. */
  readonly leader: boolean;
  /** It retains what its subset has lost, by its acknowledged and its next rules, and will not own it once nothing is fenced. */
  readonly retains: boolean;
}

export interface RestartPodFacts {
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: Pick<AppPlan, "rulesFor" | "desired">;
  /** The API server has accepted the eviction of the pod with this uid, whether or not the watch has shown that yet. */
  readonly isEvicted: (uid: string) => boolean;
}

export function restartPods({ pods, factsOf, plan, isEvicted }: RestartPodFacts): RestartPod[] {
  const isLostTo = createLosses(plan.desired);
  return pods.map((pod) => {
    const known = factsOf(podKey(pod));
    return {
      ...pod,
      terminating: pod.terminating || isEvicted(pod.uid),
      connected: known?.connected ?? false,
      leader: known?.leader ?? false,
      // What an undone edit is about to take back is still acknowledged, and no reason any more; nor is what waits behind a fence.
      retains:
        retainsSomething(known?.acknowledged?.table) &&
        retainsSomething(plan.rulesFor(pod).table) &&
        isLostTo(pod, known?.acknowledged),
    };
  });
}

/** Only a pod that its workload replaces may be evicted. A pod that is terminating needs nothing more. */
export function needsRestart({ retains, controlled, proxy, ended, terminating }: RestartPod): boolean {
  return retains && controlled && proxy === "own" && !ended && !terminating;
}

/** Whether a pod of these rules would retain something under the desired table. Compared once for all pods of one table. */
function createLosses(desired: RouteTable) {
  const known = new Map<RouteTable, Map<string, boolean>>();
  return ({ subset }: AppPod, from: Snapshot | undefined): boolean => {
    if (from === undefined) return false;
    const ofTable = known.get(from.table) ?? new Map<string, boolean>();
    known.set(from.table, ofTable);
    const key = `${from.subset}>${subset}`; // names of subsets hold no such sign
    const isLost = ofTable.get(key) ?? retainedBetween(from, { subset, table: desired }).length > 0;
    ofTable.set(key, isLost);
    return isLost;
  };
}

function retainsSomething(table: RouteTable | undefined): boolean {
  return (table?.retained?.length ?? 0) > 0;
}

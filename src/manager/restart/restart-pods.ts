// The pods of an app, with the facts that a restart needs. Pure.
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
  /** Its proxy reports that it holds the operator's lock. */
  readonly leader: boolean;
  /**
   * The pod retains something under its acknowledged rules and under its next rules, and will not own all of
   * it again after the handover.
   */
  readonly retains: boolean;
}

export interface RestartPodFacts {
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: Pick<AppPlan, "rulesFor" | "desired">;
  /**
   * True if the API server has accepted the eviction of the pod with this uid, even if the watch has not
   * shown that yet.
   */
  readonly isEvicted: (uid: string) => boolean;
}

export function restartPods({ pods, factsOf, plan, isEvicted }: RestartPodFacts): RestartPod[] {
  const isLostTo = createLosses(plan.desired);
  return pods.map((pod) => {
    const proxy = factsOf(podKey(pod));
    return {
      ...pod,
      terminating: pod.terminating || isEvicted(pod.uid),
      connected: proxy?.connected ?? false,
      leader: proxy?.leader ?? false,
      // The acknowledged rules may retain namespaces that the pod gets back because an edit was undone. Such
      // namespaces need no restart, and neither do namespaces that are only fenced.
      retains:
        retainsSomething(proxy?.acknowledged?.table) &&
        retainsSomething(plan.rulesFor(pod).table) &&
        isLostTo(pod, proxy?.acknowledged),
    };
  });
}

/** Only a pod that its workload replaces may be evicted. A terminating pod needs no eviction. */
export function needsRestart({ retains, controlled, proxy, ended, terminating }: RestartPod): boolean {
  return retains && controlled && proxy === "own" && !ended && !terminating;
}

/**
 * True if a pod that enforces `from` would retain something under the desired table. Compared once for all
 * pods with the same table.
 */
function createLosses(desired: RouteTable) {
  const byTable = new Map<RouteTable, Map<string, boolean>>();
  return ({ subset }: AppPod, from: Snapshot | undefined): boolean => {
    if (from === undefined) return false;
    const ofTable = byTable.get(from.table) ?? new Map<string, boolean>();
    byTable.set(from.table, ofTable);
    const key = `${from.subset}>${subset}`; // a subset's name contains no ">"
    const isLost = ofTable.get(key) ?? retainedBetween(from, { subset, table: desired }).length > 0;
    ofTable.set(key, isLost);
    return isLost;
  };
}

function retainsSomething(table: RouteTable | undefined): boolean {
  return (table?.retained?.length ?? 0) > 0;
}

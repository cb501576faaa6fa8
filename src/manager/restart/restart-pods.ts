// The pods of an app, with the facts that a restart needs. Pure.

import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import { type FactsOf, podKey } from "../../mesh/handover/proxy-facts.ts";
import { retainedBetween } from "../../mesh/handover/retained.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";

export interface RestartPod extends AppPod {
  readonly connected: boolean;
  /** Its proxy reports that it holds the operator's lock. */
  readonly leader: boolean;
  /**
   * Its acknowledged and its next table retain namespaces, some of which it does not own in the desired
   * table.
   */
  readonly retains: boolean;
}

interface RestartPodFacts {
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: Pick<AppPlan, "rulesFor" | "desired">;
  /** True if the eviction of the pod is accepted, even if the watch has not shown that yet. */
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
      // A namespace that is only fenced, or comes back because an edit was undone, needs no restart.
      retains:
        retainsSomething(proxy?.acknowledged?.table) &&
        retainsSomething(plan.rulesFor(pod).table) &&
        isLostTo(pod, proxy?.acknowledged),
    };
  });
}

/** Only a pod whose controller replaces it may be evicted. */
export function needsRestart({ retains, controlled, proxy, ended, terminating }: RestartPod): boolean {
  return retains && controlled && proxy === "own" && !ended && !terminating;
}

/**
 * The result says if a pod that enforces `from` retains something in the desired table. Each table is
 * compared once.
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

const retainsSomething = (table: RouteTable | undefined) => (table?.retained?.length ?? 0) > 0;

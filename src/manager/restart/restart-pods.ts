// The pods of an app as far as their restart needs to know them. Pure.
import type { RouteTable } from "../../route/table.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "../translate/app-pods.ts";
import type { AppPlan } from "../translate/plan-app.ts";

export interface RestartPod extends AppPod {
  /** Its proxy is connected. */
  readonly connected: boolean;
  /** It is known to hold the operator's lock. */
  readonly leader: boolean;
  /** It has acknowledged to show what its subset has lost, and is to show it still. */
  readonly shows: boolean;
}

export interface RestartPodFacts {
  readonly pods: readonly AppPod[];
  readonly factsOf: (pod: string) => ProxyFacts | undefined;
  readonly plan: Pick<AppPlan, "rulesFor">;
  /** The API server has accepted the eviction of the pod with this uid, whether or not the watch has shown that yet. */
  readonly isEvicted: (uid: string) => boolean;
}

export function restartPods({ pods, factsOf, plan, isEvicted }: RestartPodFacts): RestartPod[] {
  return pods.map((pod) => {
    const known = factsOf(podKey(pod));
    return {
      ...pod,
      terminating: pod.terminating || isEvicted(pod.uid),
      connected: known?.connected ?? false,
      leader: known?.leader ?? false,
      // What an undone edit is about to take back is still acknowledged, and no reason any more.
      shows: showsSomething(known?.enforced?.table) && showsSomething(plan.rulesFor(pod).table),
    };
  });
}

/** Only a pod that is made anew may be evicted; one that is ending already needs nothing more. */
export function needsRestart({ shows, controlled, proxy, ended, terminating }: RestartPod): boolean {
  return shows && controlled && proxy === "own" && !ended && !terminating;
}

function showsSomething(table: RouteTable | undefined): boolean {
  return (table?.shown?.length ?? 0) > 0;
}

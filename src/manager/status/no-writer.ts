// The time without a writer: from sending the new route to the losing pods until the first gaining pod
// enforces the grant. It is measured for each gaining subset over all its gained namespaces together, so it
// is never too short. Pure: the status contains the beginning (`subsets[].waitingSince`), for the next
// manager too.
//
//   nothing => waiting    the subset is fenced while a losing pod has the new route and has not acknowledged it, or the subset
//                         has a grant that none of its pods enforces yet
//   waiting => nothing    no fence is left, and a pod of the subset enforces its rules or the subset has no pods
//
// A pod without a proxy continues to write, so the time does not run while the handover waits for such a pod.
import { isInClusterScope } from "../../kube/place.ts";
import type { RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { createHolders } from "../plan/class-facts.ts";
import { ageMs } from "./ages.ts";
import { isSynced, proxyOf, type StatusFacts, servingPods } from "./facts.ts";

/** What one subset waits for. */
export interface Gain {
  readonly subset: string;
  /**
   * The time since which no pod can write to the gained namespaces; undefined if a pod can, or if the subset
   * gains nothing.
   */
  readonly since: string | undefined;
  /** No pod of another subset has a claim any more, but no pod of this subset enforces the grant yet. */
  readonly isGranting: boolean;
  /** The number of granted namespaces that no pod enforces yet. */
  readonly granted: number;
  /** The measured time, if it has just ended. */
  readonly seconds: number | undefined;
}

export function gainsOf(facts: StatusFacts): ReadonlyMap<string, Gain> {
  const serving = servingPods(facts);
  return new Map(facts.plan.subsets.map((subset) => [subset, gainOf(facts, subset, serving)]));
}

function gainOf(facts: StatusFacts, subset: string, serving: readonly AppPod[]): Gain {
  const { plan, previous, now } = facts;
  const before = previous?.subsets?.find(({ name }) => name === subset)?.waitingSince;
  const table = plan.rules.get(subset)?.table;
  const waits = plan.waits.filter(({ to }) => to.includes(subset));
  const ownPods = serving.filter((pod) => pod.subset === subset);
  const isEnforced = ownPods.some((pod) => isSynced(facts, pod));
  const granted = isEnforced || table === undefined ? 0 : mostFreed(facts, ownPods, table);
  const isFenced = table !== undefined && hasFences(table);
  const wasNext = before !== undefined || isGainingOf(facts, subset);
  const isGranting = !isFenced && !isEnforced && ownPods.length > 0 && (granted > 0 || wasNext);
  const nothing = { subset, since: undefined, isGranting, granted, seconds: undefined };
  if (waits.some(({ cause }) => cause === "no-proxy")) return nothing;
  const isWaiting =
    waits.some(({ cause }) => cause === "holds" || cause === "pod-gone") || (isFenced && before !== undefined) || isGranting;
  if (isWaiting) return { ...nothing, since: before ?? now };
  return { ...nothing, seconds: before !== undefined && isEnforced ? ageMs(before, now) / 1000 : undefined };
}

/** The previous status contains a running handover to the subset. */
function isGainingOf({ previous }: StatusFacts, subset: string): boolean {
  const handover = previous?.handover;
  return handover?.to === subset && (handover.phase === "Draining" || handover.phase === "Granting");
}

function hasFences({ fenced, rules }: RouteTable): boolean {
  return fenced.size > 0 || rules.some((rule) => rule.kind === "fence" && rule.because === "moves");
}

/**
 * The largest number of the subset's namespaces that one of its pods still fences and the new table does not.
 * Each enforced table is read once, because a thousand pods share it.
 */
function mostFreed(facts: StatusFacts, pods: readonly AppPod[], table: RouteTable): number {
  const readTables = new Set<RouteTable>();
  const holders = createHolders(table);
  let most = 0;
  for (const pod of pods) {
    const enforced = proxyOf(facts, pod)?.acknowledged;
    if (enforced === undefined || enforced.subset !== pod.subset || readTables.has(enforced.table)) continue;
    readTables.add(enforced.table);
    let count = 0;
    for (const namespace of enforced.table.fenced) {
      // After an undone move the fence is removed too, but the subset gains nothing.
      if (!isInClusterScope(namespace) && !table.fenced.has(namespace) && holders(namespace).has(pod.subset)) count++;
    }
    most = Math.max(most, count);
  }
  return most;
}

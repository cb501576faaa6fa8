// How long nobody can write: from when the pods that lose namespaces are told to stop until the first pod of the subset that
// gets them enforces that. Measured for each gaining subset, over all that it is to get at a time, so never too short. Pure:
// the beginning stands in the status (`subsets[].waitingSince`), where the next manager finds it.
//
//   nothing => waiting    the subset is fenced off from what a pod still holds and has been told to give up, or it is granted
//                         what none of its pods enforces yet
//   waiting => nothing    no fence is left, and a pod of the subset enforces its rules, or it has no pod to do so
//
// A pod without a proxy cannot be told to stop and goes on writing: while one is waited for, the time does not run.
import type { RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { createHolders } from "../plan/claims.ts";
import { ageMs } from "./ages.ts";
import { isSynced, proxyOf, type StatusFacts, servingPods } from "./facts.ts";

/** What one subset waits for. */
export interface Gain {
  readonly subset: string;
  /** Since when no pod can write to what it gains; undefined: a pod can, or it gains nothing. */
  readonly since: string | undefined;
  /** No other pod holds it any more, but no pod of the subset enforces it yet. */
  readonly isGranting: boolean;
  /** Namespaces that are granted and that no pod enforces yet. */
  readonly granted: number;
  /** The time that has just ended. */
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
  const own = serving.filter((pod) => pod.subset === subset);
  const isEnforced = own.some((pod) => isSynced(facts, pod));
  const granted = isEnforced || table === undefined ? 0 : mostFreed(facts, own, table);
  const isFenced = table !== undefined && hasFences(table);
  const wasNext = before !== undefined || isGainingOf(facts, subset);
  const isGranting = !isFenced && !isEnforced && own.length > 0 && (granted > 0 || wasNext);
  const nothing = { subset, since: undefined, isGranting, granted, seconds: undefined };
  if (waits.some(({ cause }) => cause === "no-proxy")) return nothing;
  const isWaiting =
    waits.some(({ cause }) => cause === "holds" || cause === "pod-gone") || (isFenced && before !== undefined) || isGranting;
  if (isWaiting) return { ...nothing, since: before ?? now };
  return { ...nothing, seconds: before !== undefined && isEnforced ? ageMs(before, now) / 1000 : undefined };
}

/** A handover to the subset runs by the status before. */
function isGainingOf({ previous }: StatusFacts, subset: string): boolean {
  const handover = previous?.handover;
  return handover?.to === subset && (handover.phase === "Draining" || handover.phase === "Granting");
}

function hasFences({ fenced, rules }: RouteTable): boolean {
  return fenced.size > 0 || rules.some((rule) => rule.kind === "fence" && rule.because === "moves");
}

/**
 * How many namespaces of the subset are fenced by what one of its pods enforces and no more by their new table, at most. Read once
 * a table: a thousand pods share one.
 */
function mostFreed(facts: StatusFacts, pods: readonly AppPod[], table: RouteTable): number {
  const seen = new Set<RouteTable>();
  const holders = createHolders(table);
  let most = 0;
  for (const pod of pods) {
    const enforced = proxyOf(facts, pod)?.acknowledged;
    if (enforced === undefined || enforced.subset !== pod.subset || seen.has(enforced.table)) continue;
    seen.add(enforced.table);
    let count = 0;
    for (const namespace of enforced.table.fenced) {
      // After an undone move the fence falls too, and gives nothing.
      if (!table.fenced.has(namespace) && holders(namespace).has(pod.subset)) count++;
    }
    most = Math.max(most, count);
  }
  return most;
}

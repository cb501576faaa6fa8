// The numbers of the status: proxies, namespaces, subsets, and the time that subsets wait for namespaces.
// Pure. Invariant: their size is bounded by the number of subsets.

import type { AppStatus } from "../../api/app-status.ts";
import { isInClusterScope } from "../../kube/place.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import { createHolders } from "../../mesh/handover/class-facts.ts";
import { isUnheard } from "../../mesh/handover/plan-fences.ts";
import { lockNameFor } from "../../mesh/ownership/lock.ts";
import { countNamespaces } from "../../mesh/ownership/place-lists.ts";
import { DEFAULT_SUBSET, namespacesOf, type RouteTable } from "../../mesh/ownership/table.ts";
import { countByHolder } from "../apps/count-by-holder.ts";
import { countGaps } from "../sharding/family-status.ts";
import { type CountsAbroad, countsAbroad } from "./counts-abroad.ts";
import { ageMs, isSynced, meshedPods, proxyOf, type StatusFacts, servingPods, wholeSeconds } from "./facts.ts";

export interface Counts {
  readonly proxies: NonNullable<AppStatus["proxies"]>;
  readonly namespaces: NonNullable<AppStatus["namespaces"]>;
  readonly subsets: NonNullable<AppStatus["subsets"]>;
  /** The namespaces of each subset, at home and in other clusters. */
  readonly owned: ReadonlyMap<string, number>;
  readonly abroad: CountsAbroad;
}

export function countsOf(facts: StatusFacts, gains: ReadonlyMap<string, Gain>): Counts {
  const { desired } = facts.plan;
  const byHolder = countByHolder(desired);
  const unowned = byHolder.get(undefined) ?? 0;
  const abroad = countsAbroad(facts.plan);
  const owned = new Map(abroad.owned);
  for (const [subset, count] of byHolder) if (subset !== undefined) owned.set(subset, (owned.get(subset) ?? 0) + count);
  const elsewhere = [...abroad.owned.values()].reduce((sum, count) => sum + count, 0);
  return {
    proxies: countProxies(facts),
    namespaces: {
      total: countNamespaces(desired) - unowned + elsewhere,
      moving: movingOf(facts, gains),
      held: Math.max(0, ...meshedPods(facts).map((pod) => proxyOf(facts, pod)?.backlog.heldNamespaces ?? 0)),
      kept: facts.plan.kept || undefined,
      frozen: frozenOf(facts) || undefined,
      gaps: countGaps(desired) || undefined,
      conflicting: conflictingOf(facts) || undefined,
    },
    subsets: facts.plan.subsets.map((name) => subsetStatus(facts, name, owned.get(name) ?? 0, gains.get(name)?.since)),
    owned,
    abroad,
  };
}

/** Each subset has the same frozen namespaces. Freezes that stop nobody do not count. */
export function frozenOf({ plan }: Pick<StatusFacts, "plan">): number {
  const [rules] = plan.rules.values();
  return (rules?.frozen?.length ?? 0) - (plan.unheld?.length ?? 0);
}

function countProxies(facts: StatusFacts): Counts["proxies"] {
  const meshed = meshedPods(facts);
  const isConnected = meshed.map((pod) => proxyOf(facts, pod)?.connected === true);
  // A proxy that has never registered with this manager is still starting, which the reason Rebuilding shows.
  const isAway = servingPods(facts).some((pod) => proxyOf(facts, pod)?.connected === false);
  return {
    total: meshed.length,
    connected: isConnected.filter(Boolean).length,
    synced: meshed.filter((pod) => isSynced(facts, pod)).length,
    awaySince: isAway ? (facts.previous?.proxies?.awaySince ?? wholeSeconds(facts.now)) : undefined,
  };
}

/** Namespaces that a pod of another subset still claims, or that are granted and not enforced yet. */
function movingOf({ plan }: StatusFacts, gains: ReadonlyMap<string, Gain>): number {
  const lists = new Set(plan.waits.flatMap((wait) => (isUnheard(wait) ? [] : [wait.namespaces])));
  const draining = new Set<string>();
  for (const namespaces of lists) {
    for (const namespace of namespaces) draining.add(namespace);
  }
  let granted = 0;
  for (const gain of gains.values()) granted += gain.granted;
  return draining.size + granted;
}

/** The number of namespaces of other subsets to which a pod without a proxy may write. */
function conflictingOf(facts: StatusFacts): number {
  const { pods, plan } = facts;
  if (!pods.some(({ proxy, running }) => proxy !== "own" && running)) return 0;
  const claimed = new Set<string>();
  const readDigests = new Set<string>();
  for (const pod of meshedPods(facts)) {
    const enforced = proxyOf(facts, pod)?.acknowledged;
    if (enforced === undefined || enforced.subset === DEFAULT_SUBSET || readDigests.has(enforced.digest)) continue;
    readDigests.add(enforced.digest);
    const holders = createHolders(enforced.table);
    for (const name of namespacesOf(plan.desired)) {
      if (holders(name).has(enforced.subset)) claimed.add(name);
    }
  }
  return claimed.size;
}

function subsetStatus(facts: StatusFacts, name: string, namespaces: number, waitingSince: string | undefined) {
  const { pods, lockName } = facts;
  const ownPods = pods.filter(({ subset }) => subset === name);
  return {
    name,
    namespaces,
    readyPods: ownPods.filter(({ ready }) => ready).length,
    pods: ownPods.length,
    lock: lockName === "" ? undefined : lockNameFor(lockName, name),
    leader: ownPods.find((pod) => proxyOf(facts, pod)?.leader)?.name,
    waitingSince,
  };
}

// The time without a writer: from sending the new route to the losing pods until the first gaining pod
// enforces the grant. It is measured for all namespaces of a gaining subset together, so it is never too
// short. The status has its beginning (`subsets[].waitingSince`), so that the next manager knows it.
//
//   nothing => waiting    the subset is fenced while a losing pod has the new route and has not acknowledged it, or the subset
//                         has a grant that none of its pods enforces yet
//   waiting => nothing    no fence is left, and a pod of the subset enforces its rules or the subset has no pods
//
// A pod without a proxy continues to write, so the time does not run while the handover waits for such a pod.

export interface Gain {
  readonly subset: string;
  /** Since when no pod can write to the gained namespaces; undefined if a pod can, or nothing is gained. */
  readonly since: string | undefined;
  /** No pod of another subset has a claim any more, but no pod of this subset enforces the grant yet. */
  readonly isGranting: boolean;
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

function isGainingOf({ previous }: StatusFacts, subset: string): boolean {
  const handover = previous?.handover;
  return handover?.to === subset && (handover.phase === "Draining" || handover.phase === "Granting");
}

function hasFences({ fenced, rules }: RouteTable): boolean {
  return fenced.size > 0 || rules.some((rule) => rule.kind === "fence" && rule.because === "moves");
}

/** The most namespaces that one of the subset's pods still fences and the new table does not. */
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

// The numbers of the status: proxies, namespaces, subsets. Pure. Invariant: bounded by the number of subsets.
import type { AppStatus } from "../../api/app-status.ts";
import { lockNameFor } from "../../route/lock.ts";
import { DEFAULT_SUBSET, namespacesOf, type RouteTable } from "../../route/table.ts";
import { createHolders } from "../plan/class-facts.ts";
import { countGaps } from "../sharding/family-status.ts";
import { isSynced, isUnheard, meshedPods, proxyOf, type StatusFacts, servingPods, wholeSeconds } from "./facts.ts";
import type { Gain } from "./no-writer.ts";

export interface Counts {
  readonly proxies: NonNullable<AppStatus["proxies"]>;
  readonly namespaces: NonNullable<AppStatus["namespaces"]>;
  readonly subsets: NonNullable<AppStatus["subsets"]>;
  /** The number of namespaces by owning subset. */
  readonly owned: ReadonlyMap<string, number>;
}

export function countsOf(facts: StatusFacts, gains: ReadonlyMap<string, Gain>): Counts {
  const { desired } = facts.plan;
  const byHolder = countNamespaces(desired);
  const unowned = byHolder.get(undefined) ?? 0;
  const owned = new Map([...byHolder].flatMap(([subset, count]) => (subset === undefined ? [] : [[subset, count]])));
  return {
    proxies: countProxies(facts),
    namespaces: {
      total: namespacesOf(desired).length - unowned,
      moving: movingOf(facts, gains),
      held: Math.max(0, ...meshedPods(facts).map((pod) => proxyOf(facts, pod)?.backlog.heldNamespaces ?? 0)),
      ...(facts.plan.kept === 0 ? {} : { kept: facts.plan.kept }),
      ...nonZero("gaps", countGaps(desired)),
      ...nonZero("conflicting", conflictingOf(facts)),
    },
    subsets: facts.plan.subsets.map((name) => subsetStatus(facts, name, owned.get(name) ?? 0, gains.get(name)?.since)),
    owned,
  };
}

function nonZero<K extends string>(key: K, count: number): { [key in K]?: number } {
  return count === 0 ? {} : ({ [key]: count } as { [key in K]: number });
}

function countProxies(facts: StatusFacts): Counts["proxies"] {
  const meshed = meshedPods(facts);
  const isConnected = meshed.map((pod) => proxyOf(facts, pod)?.connected === true);
  // A proxy that has never registered with this manager is still connecting or starting. The reason
  // Rebuilding shows that.
  const isAway = servingPods(facts).some((pod) => proxyOf(facts, pod)?.connected === false);
  return {
    total: meshed.length,
    connected: isConnected.filter(Boolean).length,
    synced: meshed.filter((pod) => isSynced(facts, pod)).length,
    ...(isAway ? { awaySince: facts.previous?.proxies?.awaySince ?? wholeSeconds(facts.now) } : {}),
  };
}

/**
 * The number of moving namespaces: those that a pod of another subset still claims, and those that are
 * granted and not enforced yet. A pod that has only not reported yet does not count.
 */
function movingOf({ plan }: StatusFacts, gains: ReadonlyMap<string, Gain>): number {
  // Pods of equal claims share one list.
  const lists = new Set(plan.waits.flatMap((wait) => (isUnheard(wait) ? [] : [wait.namespaces])));
  const draining = new Set<string>();
  for (const namespaces of lists) {
    for (const namespace of namespaces) draining.add(namespace);
  }
  let granted = 0;
  for (const gain of gains.values()) granted += gain.granted;
  return draining.size + granted;
}

/** The number of namespaces by owning subset; under undefined those that no subset owns. */
function countNamespaces(desired: RouteTable): ReadonlyMap<string | undefined, number> {
  const counts = new Map<string | undefined, number>();
  const holdersIn = createHolders(desired);
  for (const namespace of namespacesOf(desired)) {
    const holders = holdersIn(namespace);
    for (const holder of holders.size === 0 ? [undefined] : holders) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  }
  return counts;
}

/**
 * The number of namespaces of other subsets to which a pod that this app does not control may write. A pod
 * without a proxy may write everywhere. For a pod with another app's proxy it is not known where the pod may
 * write.
 */
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
  const leader = ownPods.find((pod) => proxyOf(facts, pod)?.leader)?.name;
  return {
    name,
    namespaces,
    readyPods: ownPods.filter(({ ready }) => ready).length,
    pods: ownPods.length,
    ...(lockName === "" ? {} : { lock: lockNameFor(lockName, name) }),
    ...(leader === undefined ? {} : { leader }),
    ...(waitingSince === undefined ? {} : { waitingSince }),
  };
}

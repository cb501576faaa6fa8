// Claims: what each pod of an app may enforce, and so may write to, by the facts about its proxy. They are
// the only memory of a handover. Also compares a claimed table with the desired one. Pure. A claim lasts
// while the pod lives or the API server may accept its token.

import { remember, rememberNames } from "../../base/remember.ts";
import { isInClusterScope } from "../../kube/place.ts";
import { CLUSTER_OBJECTS, CLUSTER_SERVERS } from "../contract/route-type.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import { placePairs } from "../ownership/place-lists.ts";
import type { AppRef, ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import { DEFAULT_SUBSET, isFencedIn, type RouteTable } from "../ownership/table.ts";
import type { AppPod } from "./app-pod.ts";
import { classFacts, classNumber } from "./class-facts.ts";
import { type FactsOf, type ProxyFacts, podKey, snapshotsIn } from "./proxy-facts.ts";

export type Claim = ClaimOfPod & {
  /** The pod's object is gone. Its claims last for a grace time (facts/pod-history.ts). */
  readonly isGone?: true;
  /** See AppPod.unstarted. */
  readonly isUnstarted?: true;
};

/** The pod enforces a table, or may enforce it at any moment. */
export type ClaimOfTable = Extract<Claim, { readonly kind: "table" }>;

type ClaimOfPod =
  /** The pod enforces this table as this subset, or was sent it (not `enforced`) and may enforce it at any moment. */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
      /** Undefined if its proxy enforces nothing about other clusters. */
      readonly clusters?: readonly ClusterRoute[] | undefined;
      readonly clusterTables?: ClusterTables | undefined;
      /** Its proxy hides the objects of clusters, but does not see what the pod sends to their servers. */
      readonly hidesObjectsOnly?: boolean | undefined;
    }
  /**
   * The pod may claim everything. `subset` is "" for a pod without a proxy, which acts as the default subset,
   * and undefined if the proxy has not reported. `podName` is "" for pods that were removed before this
   * manager led.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/** The newest snapshot that the proxy may enforce, if it is a snapshot of this app. */
export function lastSnapshot(app: AppRef, facts: ProxyFacts | undefined): Snapshot | undefined {
  const last = facts?.outstanding ?? facts?.inDoubt.at(-1) ?? facts?.acknowledged;
  return last !== undefined && isOfApp(app, last) ? last : undefined;
}

/** A pod has no claim if its proxy has never served. */
export function podClaims(app: AppRef, pods: readonly AppPod[], factsOf: FactsOf): Claim[] {
  return pods.flatMap((pod) => claimsOf(app, pod, factsOf(podKey(pod))));
}

/** A removed pod with the last facts about its proxy. "unknown": see GonePod. */
export type GoneAppPod = { readonly pod: AppPod; readonly facts: ProxyFacts | undefined } | "unknown";

/** The claims of removed pods that may still write. A pod without facts about its proxy claims everything. */
export function goneClaims(app: AppRef, gone: readonly GoneAppPod[]): Claim[] {
  return gone.flatMap((each): Claim[] => {
    if (each === "unknown") return [{ kind: "everything", podName: "", subset: undefined, isGone: true }];
    // The last status proves nothing, since no kubelet reports what a removed pod did later.
    const pod = { ...each.pod, running: true, ended: false };
    return claimsOf(app, pod, each.facts).map((claim) => ({ ...claim, isGone: true }));
  });
}

function claimsOf(app: AppRef, pod: AppPod, facts: ProxyFacts | undefined): Claim[] {
  if (isOver(pod, facts)) return [];
  const everything = (subset: string | undefined): Claim => ({ kind: "everything", podName: pod.name, subset });
  const claims: Claim[] = [];
  // Such a pod uses the lock of the default subset, and writes everything.
  if (pod.proxy === "none" && pod.running) claims.push(everything(DEFAULT_SUBSET));
  if (facts === undefined) {
    if (pod.proxy === "none" || !pod.running) return claims;
    claims.push({ ...everything(undefined), ...(pod.unstarted ? { isUnstarted: true } : {}) });
    return claims;
  }
  if (facts.mayHoldMore) claims.push(everything(undefined));
  for (const snapshot of snapshotsOf(pod, facts)) {
    const { subset, table, clusterTables } = snapshot;
    const { capabilities } = facts;
    const clusters = capabilities.has(CLUSTER_OBJECTS) ? (snapshot.clusters ?? NO_CLUSTERS) : undefined;
    const hidesObjectsOnly = (clusters !== undefined && !capabilities.has(CLUSTER_SERVERS)) || undefined;
    const enforced = snapshot === facts.acknowledged;
    // The table of another app does not show what the pod claims of this app.
    if (isOfApp(app, snapshot))
      claims.push({ kind: "table", podName: pod.name, subset, table, enforced, clusters, clusterTables, hidesObjectsOnly });
    else claims.push(everything(undefined));
  }
  return claims;
}

const NO_CLUSTERS: readonly ClusterRoute[] = [];

export function isOver(pod: AppPod, facts: ProxyFacts | undefined): boolean {
  return pod.ended && facts?.connected !== true;
}

export function snapshotsOf(pod: AppPod, facts: ProxyFacts | undefined): Snapshot[] {
  return facts === undefined || isOver(pod, facts) ? [] : snapshotsIn(facts);
}

export function isOfApp(app: AppRef, snapshot: Snapshot): boolean {
  return snapshot.app.namespace === app.namespace && snapshot.app.name === app.name;
}

const comparisons = remember((desired: RouteTable) => remember((claimed: RouteTable) => createComparison(desired, claimed)));

/** The cost of the first comparison grows with the namespaces, that of later ones with the classes. */
export function compareWith(desired: RouteTable, claimed: RouteTable) {
  return comparisons(desired)(claimed);
}

export type TableComparison = ReturnType<typeof createComparison>;

function createComparison(desired: RouteTable, claimed: RouteTable) {
  const [wanted, had] = [classFacts(desired), classFacts(claimed)];
  const isSame = (from: number, to: number) => had.signature(from) === wanted.signature(to);
  // Tables of the subsets of one plan differ in fences only.
  const hasConflicts = wanted !== had || desired.classOf !== claimed.classOf;
  return {
    /** The namespaces that the subset owns by the claimed table, but not as desired. */
    conflictsOf: rememberNames((subset): readonly string[] => {
      const conflicts: string[] = [];
      if (!hasConflicts) return conflicts;
      for (const [from, targets] of pairsOf(desired.classOf, claimed.classOf)) {
        if (!had.holders(from).has(subset)) continue;
        for (const [to, names] of targets) {
          if (isSame(from, to)) continue;
          for (const name of names) if (!isFencedIn(claimed, name)) conflicts.push(name);
        }
      }
      return conflicts;
    }),
    /** True if the subset owns the namespace by the claimed table, and as desired. */
    hasAsDesired(subset: string, namespace: string): boolean {
      if (isFencedIn(claimed, namespace)) return false;
      const isNamed = desired.classOf.has(namespace) || claimed.classOf.has(namespace);
      if (!isNamed && !isInClusterScope(namespace)) return false;
      const from = classNumber(claimed, namespace);
      return had.holders(from).has(subset) && isSame(from, classNumber(desired, namespace));
    },
  };
}

type ClassOf = RouteTable["classOf"];

/** The namespaces by their class in the claimed table, then by their class in the desired one. */
type ClassPairs = ReadonlyMap<number, ReadonlyMap<number, readonly string[]>>;

// The tables of the subsets of one plan share `classOf`, so they share the pairs.
const pairsByClasses = remember((desired: ClassOf) => remember((claimed: ClassOf): ClassPairs => makePairs(desired, claimed)));

export function pairsOf(desired: ClassOf, claimed: ClassOf): ClassPairs {
  return pairsByClasses(desired)(claimed);
}

function makePairs(desired: ClassOf, claimed: ClassOf): ClassPairs {
  const pairs = new Map<number, Map<number, readonly string[]>>();
  const add = (from: number, to: number, places: readonly string[]) => {
    const targets = pairs.get(from) ?? new Map<number, readonly string[]>();
    pairs.set(from, targets);
    const known = targets.get(to);
    targets.set(to, known === undefined ? places : [...known, ...places]);
  };
  for (const { from, to, places } of placePairs(claimed, desired)) {
    const numbers = (place: string) =>
      [classNumber({ classOf: claimed }, place), classNumber({ classOf: desired }, place)] as const;
    if (from !== undefined && to !== undefined) add(...numbers(places[0] ?? ""), places);
    else
      for (const same of Map.groupBy(places, (place) => numbers(place).join()).values()) {
        const [first = ""] = same;
        add(...numbers(first), same);
      }
  }
  return pairs;
}

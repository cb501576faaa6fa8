// Claims: what each pod of an app may be enforcing, and so may write to, by the facts about its proxy. And
// where a claimed table differs from the desired one. Pure. A claim lasts while the pod lives or the API
// server may accept its token. The manager has no other memory of a handover.
import type { AppRef, Snapshot } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET, isFencedIn, type RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import { type FactsOf, type ProxyFacts, snapshotsIn } from "../facts/proxy-facts.ts";
import { classFacts, classNumber } from "./class-facts.ts";
import { remember, rememberNames } from "./remember.ts";
export type Claim = ClaimOfPod & {
  /** The pod's object is gone. Its claims last for a grace time (facts/pod-history.ts). */
  readonly isGone?: true;
  /** See AppPod.unstarted. */
  readonly isUnstarted?: true;
};

type ClaimOfPod =
  /** The pod enforces this table as this subset, or (not `enforced`) it was sent and may be at any moment. */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may claim everything. Without a proxy, it acts as the default subset (`subset` is ""). If its
   * proxy has not reported to this leader, its subset is not known (undefined). `podName` is "" for pods that
   * were removed before this manager knew the pods.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/** The newest snapshot that the proxy may enforce, if it is a snapshot of this app. */
export function lastSnapshot(app: AppRef, facts: ProxyFacts | undefined): Snapshot | undefined {
  const last = facts?.outstanding ?? facts?.inDoubt.at(-1) ?? facts?.acknowledged;
  return last !== undefined && isOfApp(app, last) ? last : undefined;
}

/** The claims of all live pods. A pod has no claim if its proxy has never served. */
export function podClaims(app: AppRef, pods: readonly AppPod[], factsOf: FactsOf): Claim[] {
  return pods.flatMap((pod) => claimsOf(app, pod, factsOf(podKey(pod))));
}

/** A pod without an object, with the last facts about its proxy. "unknown": see GonePod. */
export type GoneAppPod = { readonly pod: AppPod; readonly facts: ProxyFacts | undefined } | "unknown";

/** The claims of removed pods that may still write. Without facts about its proxy, a pod claims all. */
export function goneClaims(app: AppRef, gone: readonly GoneAppPod[]): Claim[] {
  return gone.flatMap((each): Claim[] => {
    if (each === "unknown") return [{ kind: "everything", podName: "", subset: undefined, isGone: true }];
    // The last status does not matter: no kubelet reports a later start of a removed pod.
    const pod = { ...each.pod, running: true, ended: false };
    return claimsOf(app, pod, each.facts).map((claim) => ({ ...claim, isGone: true }));
  });
}

function claimsOf(app: AppRef, pod: AppPod, facts: ProxyFacts | undefined): Claim[] {
  if (isOver(pod, facts)) return [];
  const everything = (subset: string | undefined): Claim => ({ kind: "everything", podName: pod.name, subset });
  const claims: Claim[] = [];
  // A pod without a proxy acts as a pod of the default subset: under the same lock, and on everything.
  if (pod.proxy === "none" && pod.running) claims.push(everything(DEFAULT_SUBSET));
  if (facts === undefined) {
    if (pod.proxy === "none" || !pod.running) return claims;
    claims.push({ ...everything(undefined), ...(pod.unstarted ? { isUnstarted: true } : {}) });
    return claims;
  }
  if (facts.mayHoldMore) claims.push(everything(undefined));
  for (const snapshot of snapshotsOf(pod, facts)) {
    const { subset, table } = snapshot;
    // The tables of another app do not show the claims on this app's subsets.
    if (isOfApp(app, snapshot))
      claims.push({ kind: "table", podName: pod.name, subset, table, enforced: snapshot === facts.acknowledged });
    else claims.push(everything(undefined));
  }
  return claims;
}

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

/** The first comparison of two tables costs as much as there are namespaces, later ones as their classes. */
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
    /** The namespaces that the subset owns, but not as desired. */
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
    /** The subset owns the namespace under the claimed table, and as desired. */
    hasAsDesired(subset: string, namespace: string): boolean {
      if (isFencedIn(claimed, namespace)) return false;
      if (!desired.classOf.has(namespace) && !claimed.classOf.has(namespace)) return false;
      const from = classNumber(claimed, namespace);
      return had.holders(from).has(subset) && isSame(from, classNumber(desired, namespace));
    },
  };
}

type ClassOf = RouteTable["classOf"];

/** The namespaces by their classes in the claimed and in the desired table, in the latter's order. */
type ClassPairs = ReadonlyMap<number, ReadonlyMap<number, readonly string[]>>;

// By the classes of the namespaces alone: the tables of the subsets of one plan share them.
const pairsByClasses = remember((desired: ClassOf) => remember((claimed: ClassOf): ClassPairs => makePairs(desired, claimed)));

export function pairsOf(desired: ClassOf, claimed: ClassOf): ClassPairs {
  return pairsByClasses(desired)(claimed);
}

function makePairs(desired: ClassOf, claimed: ClassOf): ClassPairs {
  const pairs = new Map<number, Map<number, string[]>>();
  const add = (name: string) => {
    const [from, to] = [classNumber({ classOf: claimed }, name), classNumber({ classOf: desired }, name)];
    const targets = pairs.get(from) ?? new Map<number, string[]>();
    pairs.set(from, targets);
    const names = targets.get(to);
    if (names === undefined) targets.set(to, [name]);
    else names.push(name);
  };
  for (const name of desired.keys()) add(name);
  // A namespace of the claimed table alone counts too: the default subset owns what no rule covers in it.
  for (const name of claimed.keys()) if (!desired.has(name)) add(name);
  return pairs;
}

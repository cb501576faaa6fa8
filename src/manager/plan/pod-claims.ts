// Claims: what each pod of an app may be enforcing, and so may write to, by the facts about its proxy. Pure.
// A claim lasts while the pod lives or the API server may accept its token. The manager has no other memory
// of a handover.
import type { AppRef, Snapshot } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../route/table.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf, ProxyFacts } from "../facts/proxy-facts.ts";

/** What one pod may be enforcing. */
export type Claim = ClaimOfPod & {
  /**
   * The pod's object is gone, and it receives nothing more. Its claims last for a grace time
   * (facts/pod-history.ts).
   */
  readonly isGone?: true;
  /** See AppPod.unstarted. The status reports it as the reason of the wait. */
  readonly isUnstarted?: true;
};

type ClaimOfPod =
  /**
   * The pod enforces this table as this subset. If not `enforced`, the table was sent and the pod may enforce
   * it at any moment.
   */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may claim everything. Either it runs without a proxy and acts as the default subset (`subset` is
   * ""). Or its proxy has not reported to this leader, and its subset is not known (undefined). `podName` is
   * "" for pods that were removed before this manager knew the pods.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/** The newest snapshot that the proxy may enforce, if it is a snapshot of this app; otherwise undefined. */
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

/**
 * The claims of removed pods that may still write. Without facts about its proxy, a pod claims everything.
 */
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
    // Another app has its own subsets, so its tables do not show the claims on this app's subsets.
    if (isOfApp(app, snapshot))
      claims.push({ kind: "table", podName: pod.name, subset, table, enforced: snapshot === facts.acknowledged });
    else claims.push(everything(undefined));
  }
  return claims;
}

/** The pod and its proxy have ended. */
export function isOver(pod: AppPod, facts: ProxyFacts | undefined): boolean {
  return pod.ended && facts?.connected !== true;
}

// All snapshots that a pod may be enforcing, oldest first.
export function snapshotsOf(pod: AppPod, facts: ProxyFacts | undefined): Snapshot[] {
  if (facts === undefined || isOver(pod, facts)) return [];
  return [facts.acknowledged, ...facts.inDoubt, facts.outstanding].filter((snapshot) => snapshot !== undefined);
}

export function isOfApp(app: AppRef, snapshot: Snapshot): boolean {
  return snapshot.app.namespace === app.namespace && snapshot.app.name === app.name;
}

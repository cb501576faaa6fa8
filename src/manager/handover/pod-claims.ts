// What the pods of an app may hold, from what is known of their proxies. Pure.
import type { AppRef } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "../translate/app-pods.ts";
import type { Claim } from "./claims.ts";

/** The claims of all live pods on what the app divides. A pod whose proxy has never served holds nothing. */
export function podClaims(app: AppRef, pods: readonly AppPod[], factsOf: (pod: string) => ProxyFacts | undefined): Claim[] {
  return pods.flatMap((pod) => claimsOf(app, pod, factsOf(podKey(pod))));
}

function claimsOf(app: AppRef, pod: AppPod, facts: ProxyFacts | undefined): Claim[] {
  if (pod.ended && !facts?.connected) return [];
  const everything = (subset: string | undefined): Claim => ({ kind: "everything", pod: pod.name, subset });
  const claims: Claim[] = [];
  // Without a proxy it acts as a pod of the default subset does, under the same lock, on everything.
  if (pod.proxy === "none" && pod.running) claims.push(everything(DEFAULT_SUBSET));
  if (facts === undefined) {
    if (pod.proxy !== "none" && pod.running) claims.push(everything(undefined));
    return claims;
  }
  if (facts.unresolved) claims.push(everything(undefined));
  for (const snapshot of [facts.enforced, ...facts.inDoubt, facts.outstanding]) {
    if (snapshot === undefined) continue;
    const { subset, table } = snapshot;
    const isOwn = snapshot.app.namespace === app.namespace && snapshot.app.name === app.name;
    // Another app divides by names of its own: what its subset holds cannot be told from ours.
    if (isOwn) claims.push({ kind: "table", pod: pod.name, subset, table, enforced: snapshot === facts.enforced });
    else claims.push(everything(undefined));
  }
  return claims;
}

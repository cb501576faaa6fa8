// What the pods of an app may hold, from what is known of their proxies. Pure.
import type { Snapshot } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { type AppPod, podKey } from "../translate/app-pods.ts";
import type { Claim } from "./claims.ts";

/** The claims of all live pods. A pod whose proxy has never served holds nothing. */
export function podClaims(pods: readonly AppPod[], factsOf: (pod: string) => ProxyFacts | undefined): Claim[] {
  return pods.flatMap((pod): Claim[] => {
    const key = podKey(pod);
    if (!pod.meshed) return pod.running ? [{ kind: "everything", pod: pod.name, subset: DEFAULT_SUBSET }] : [];
    const facts = factsOf(key);
    if (facts === undefined) return pod.running ? [{ kind: "everything", pod: pod.name, subset: undefined }] : [];
    const claims: Claim[] = [];
    if (facts.unresolved) claims.push({ kind: "everything", pod: pod.name, subset: undefined });
    if (facts.enforced !== undefined) claims.push(tableClaim(pod, facts.enforced, true));
    if (facts.outstanding !== undefined) claims.push(tableClaim(pod, facts.outstanding, false));
    return claims;
  });
}

function tableClaim(pod: AppPod, { subset, table }: Snapshot, enforced: boolean): Claim {
  return { kind: "table", pod: pod.name, subset, table, enforced };
}

// The record of a leader-election lock of any kind: the spec of a Lease, or the annotation of a ConfigMap or of Endpoints.
import type { Resource } from "../../../src/kube/client/resource.ts";
import { CONFIG_MAPS, LEASES } from "../../../src/kube/client/resources.ts";
import type { KubeObject } from "../../../src/kube/types.ts";

const ENDPOINTS: Resource = { group: "", version: "v1", resource: "endpoints", kind: "Endpoints", namespaced: true };
/** The resources of the kinds of lock. */
export const LOCKS = { configmaps: CONFIG_MAPS, endpoints: ENDPOINTS, leases: LEASES } as const;

export interface LockRecord {
  readonly holderIdentity?: string;
  readonly renewTime?: string;
  readonly leaderTransitions?: number;
  readonly leaseTransitions?: number;
}

export function recordOf(lock: KubeObject): LockRecord {
  const record = lock.metadata.annotations?.["control-plane.alpha.kubernetes.io/leader"];
  return record === undefined ? ((lock as { spec?: LockRecord }).spec ?? {}) : JSON.parse(record);
}

// The operator's leader-election lock. Each subset has a lock of its own, NAME---SUBSET; the default subset
// keeps NAME, so that a pod without a proxy and the default subset exclude each other.
import type { Snapshot } from "./snapshot.ts";
import { DEFAULT_SUBSET } from "./table.ts";

const LOCK_SEPARATOR = "---";

/** The lock's name upstream for a subset. */
export function lockNameFor(lockName: string, subset: string): string {
  return subset === DEFAULT_SUBSET ? lockName : `${lockName}${LOCK_SEPARATOR}${subset}`;
}

/** True for the resources of client-go's locks: leases, and configmaps or endpoints in old versions. */
export function isLockResource(group: string, resource: string): boolean {
  if (group === "coordination.k8s.io") return resource === "leases";
  return group === "" && (resource === "configmaps" || resource === "endpoints");
}

/** True if the place (a resource in a namespace) is where this app's lock lives. */
export function isLockPlace(snapshot: Snapshot, place: { group: string; resource: string; namespace: string }): boolean {
  return snapshot.lockName !== "" && place.namespace === snapshot.podNamespace && isLockResource(place.group, place.resource);
}

/** True for the lock of any subset of the app. */
export function isAnyLock({ lockName }: Snapshot, upstreamName: string): boolean {
  return upstreamName === lockName || upstreamName.startsWith(lockName + LOCK_SEPARATOR);
}

/** True for the lock of another subset of the app, which this subset must not see. */
export function isForeignLock(snapshot: Snapshot, upstreamName: string): boolean {
  return isAnyLock(snapshot, upstreamName) && upstreamName !== lockNameFor(snapshot.lockName, snapshot.subset);
}

// The operator's leader-election lock: which requests touch it and what it is called upstream. Each subset
// has a lock of its own, NAME---SUBSET; the default subset keeps NAME, so that a mesh-less pod and the
// default subset exclude each other.
import type { Snapshot } from "./snapshot.ts";
import { DEFAULT_SUBSET } from "./table.ts";

/** Separates the lock's name from the subset's. */
const LOCK_SEPARATOR = "---";

/** The field of a VirtualApp that names the lock. */
const LOCK_NAME_FIELD = "spec.configuration.controller.leaderElectionName";

/**
 * What to do about a lock that the VirtualApp does not name. `lockName` is the name in the VirtualApp; "" if
 * it has none.
 */
export function unnamedLockText(found: string, lockName: string): string {
  const [quoted, named] = [JSON.stringify(found), lockName === "" ? "none" : JSON.stringify(lockName)];
  const remedy =
    lockName === ""
      ? `set ${LOCK_NAME_FIELD} to ${quoted}`
      : `delete the VirtualApp, wait until it is deleted, and create it again with ${LOCK_NAME_FIELD} ${quoted}`;
  return `${quoted} looks like a leader-election lock, and the VirtualApp names ${named}: if it is the operator's lock, ${remedy}`;
}

/** The lock's name upstream for a subset. */
export function lockNameFor(lockName: string, subset: string): string {
  return subset === DEFAULT_SUBSET ? lockName : `${lockName}${LOCK_SEPARATOR}${subset}`;
}

/**
 * True for the resources that client-go's resource locks use: leases, and configmaps or endpoints in old
 * versions.
 */
export function isLockResource(group: string, resource: string): boolean {
  if (group === "coordination.k8s.io") return resource === "leases";
  return group === "" && (resource === "configmaps" || resource === "endpoints");
}

/** True if the place (a resource in a namespace) is where this app's lock lives. */
export function isLockPlace(snapshot: Snapshot, place: { group: string; resource: string; namespace: string }): boolean {
  return snapshot.lockName !== "" && place.namespace === snapshot.podNamespace && isLockResource(place.group, place.resource);
}

/** True for the app's lock by its name upstream, of whatever subset. */
export function isAnyLock({ lockName }: Snapshot, upstreamName: string): boolean {
  return upstreamName === lockName || upstreamName.startsWith(lockName + LOCK_SEPARATOR);
}

/**
 * True if an object of the lock's place, by its name upstream, must not be seen by this subset: another
 * subset's lock, or the default one beside the subset's own.
 */
export function isForeignLock(snapshot: Snapshot, upstreamName: string): boolean {
  return isAnyLock(snapshot, upstreamName) && upstreamName !== lockNameFor(snapshot.lockName, snapshot.subset);
}

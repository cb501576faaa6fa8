// Which objects move together in a chaos run, for each of its two apps, and whose each lock is. Pure.
import type { PodWrite } from "../support/mesh/pod-writes.ts";
import { APP, CANARY } from "./desired-owners.ts";
import { FAMILY } from "./family.ts";
import type { OwnerChange } from "./ownership-check.ts";

type Written = Pick<PodWrite, "namespace" | "resource" | "name">;

const NAMED = ["foos", "configmaps"];

/** All objects of a namespace move together. A lock always belongs to its subset. Events of elections have no place: every subset creates them. */
export function placeInVirtualApp({ namespace, resource, name }: Written): string | undefined {
  if (resource === "events" && namespace === APP.namespace) return undefined;
  return resource === "leases" && namespace === APP.namespace ? `lock ${name}` : namespace;
}

/**
 * As in a VirtualApp, but only named resources have an owner, and pods that stand by share the lock under the
 * operator's own name.
 */
export function placeInFamily({ namespace, resource, name }: Written): string | undefined {
  if (resource === "leases") return name === FAMILY.name ? undefined : `lock ${name}`;
  return NAMED.includes(resource.split("/")[0] ?? "") ? namespace : undefined;
}

/** The owner of a place that never moves. */
export function fixedOwner(place: string): readonly OwnerChange[] | undefined {
  if (place === APP.namespace) return [{ sinceMs: 0, subset: "" }];
  const lock = place.startsWith("lock ") ? ownerOfLock(place.slice("lock ".length)) : undefined;
  return lock === undefined ? undefined : [{ sinceMs: 0, subset: lock }];
}

/** The subset or shard of a lock; undefined if it is of neither app, or shared. */
export function ownerOfLock(name: string): string | undefined {
  if (name === APP.name) return "";
  if (name === `${APP.name}---${CANARY}`) return CANARY;
  return name.startsWith(`${FAMILY.name}---`) ? name.slice(`${FAMILY.name}---`.length) : undefined;
}

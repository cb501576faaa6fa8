// What a lease says and what may be done with it. Pure. Invariant: a lease of somebody else is only taken once this
// process has seen it unchanged for the whole duration that it names, by its own monotonic clock: the times written in
// it come from other clocks and are never compared.
import type { Lease, LeaseSpec } from "../kube/client/resources.ts";
import { isDeepEqual } from "./deep-equal.ts";

/** A lease as last seen, and when it was first seen like that. */
export interface Observation {
  readonly lease: Lease;
  readonly sinceMs: number;
}

/** The observation after a read: an unchanged record keeps its time. */
export function observe(before: Observation | undefined, lease: Lease, nowMs: number): Observation {
  const unchanged = before !== undefined && isDeepEqual(before.lease.spec ?? {}, lease.spec ?? {});
  return { lease, sinceMs: unchanged ? before.sinceMs : nowMs };
}

/** True if `identity` may write itself into the lease: it holds it, nobody does, or the holder let it run out. */
export function mayTake({ lease, sinceMs }: Observation, identity: string, nowMs: number): boolean {
  const { holderIdentity = "", leaseDurationSeconds = 0 } = lease.spec ?? {};
  if (holderIdentity === "" || holderIdentity === identity) return true;
  return nowMs >= sinceMs + leaseDurationSeconds * 1000;
}

/** The record with which `identity` takes or renews the lease. */
export function heldSpec(before: LeaseSpec | undefined, identity: string, leaseDurationMs: number, nowMs: number): LeaseSpec {
  const holds = before?.holderIdentity === identity;
  const now = formatMicroTime(nowMs);
  return {
    ...before,
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
    acquireTime: holds ? (before?.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: before === undefined ? 0 : (before.leaseTransitions ?? 0) + (holds ? 0 : 1),
  };
}

/** The record with which a holder gives the lease up: anybody may take it at once. */
export function releasedSpec(before: LeaseSpec | undefined, nowMs: number): LeaseSpec {
  return {
    ...before,
    holderIdentity: "",
    leaseDurationSeconds: 1,
    acquireTime: formatMicroTime(nowMs),
    renewTime: formatMicroTime(nowMs),
  };
}

/** The number of the leadership term, from 1: it grows with every change of the holder. */
export function epochOf(spec: LeaseSpec | undefined): number {
  return (spec?.leaseTransitions ?? 0) + 1;
}

/** metav1.MicroTime of a wall time in milliseconds. */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

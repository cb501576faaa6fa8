// The rules for the Lease of a leader election. Pure. Invariant: this process takes another holder's lease
// only after it has seen the lease unchanged for its whole duration, by its own monotonic clock. The times in
// a lease come from other clocks and are never compared.
import type { Lease, LeaseSpec } from "../kube/client/resources.ts";
import { isDeepEqual } from "./merge-patch.ts";

/** The last observed lease, and the time when its content was first observed. */
export interface Observation {
  readonly lease: Lease;
  readonly sinceMs: number;
}

/** The observation after a read. An unchanged lease keeps its time. */
export function observe(before: Observation | undefined, lease: Lease, nowMs: number): Observation {
  const unchanged = before !== undefined && isDeepEqual(before.lease.spec ?? {}, lease.spec ?? {});
  return { lease, sinceMs: unchanged ? before.sinceMs : nowMs };
}

/** True if `identity` may take the lease: it is the holder, there is no holder, or the lease has expired. */
export function mayTake({ lease, sinceMs }: Observation, identity: string, nowMs: number): boolean {
  const { holderIdentity = "", leaseDurationSeconds = 0 } = lease.spec ?? {};
  if (holderIdentity === "" || holderIdentity === identity) return true;
  return nowMs >= sinceMs + leaseDurationSeconds * 1000;
}

/** The spec with which `identity` takes or renews the lease. */
export function heldSpec(before: LeaseSpec | undefined, identity: string, leaseDurationMs: number, nowMs: number): LeaseSpec {
  const holds = before?.holderIdentity === identity;
  const now = formatMicroTime(nowMs);
  return {
    ...before,
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
    acquireTime: holds ? (before?.acquireTime ?? now) : now,
    renewTime: now,
    leaseTransitions: before === undefined ? firstTransitions(nowMs) : (before.leaseTransitions ?? 0) + (holds ? 0 : 1),
  };
}

// leaseTransitions is an int32. Half of its range stays free for changes, even if the clock is wrong.
const MAX_FIRST = 2 ** 30;
const FIRST_MS = Date.UTC(2026, 0, 1);

/**
 * The transitions of a new Lease: the seconds since 2026. The holder changes less often than once a second,
 * so epochs also grow after a deletion of the Lease.
 */
function firstTransitions(nowMs: number): number {
  return Math.min(MAX_FIRST, Math.max(0, Math.floor((nowMs - FIRST_MS) / 1_000)));
}

/** The spec with which a holder releases the lease. Any contender may take a released lease immediately. */
export function releasedSpec(before: LeaseSpec | undefined, nowMs: number): LeaseSpec {
  return {
    ...before,
    holderIdentity: "",
    leaseDurationSeconds: 1,
    acquireTime: formatMicroTime(nowMs),
    renewTime: formatMicroTime(nowMs),
  };
}

/** The number of the leadership term. It grows with every change of the holder. */
export function epochOf(spec: LeaseSpec | undefined): number {
  return (spec?.leaseTransitions ?? 0) + 1;
}

/** A wall time in milliseconds as metav1.MicroTime. */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

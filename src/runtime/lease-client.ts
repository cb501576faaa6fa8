// Reads and writes the Lease of a leader election, in the name of one process. Invariant: the lease is
// written only over the version that was read, and only where lease-record.ts allows it; epochs never
// decrease, even if the Lease is deleted and created again.
import type { ProcessContext } from "../base/process-context.ts";
import { LEASES, type LeaseSpec } from "../kube/client/resources.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import { epochOf, heldSpec, mayTake, type Observation, observe, releasedSpec } from "./lease-record.ts";

export interface LeaseOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly namespace: string;
  readonly name: string;
  /** The pod's name and a random part, so that each contending process has its own identity. */
  readonly identity: string;
}

interface LeaseClientOptions extends LeaseOptions {
  readonly leaseDurationMs: number;
  /** Bound of one request. */
  readonly timeoutMs: number;
  /** Called with each new holder of the lease, but not for a lease without a holder. */
  readonly onHolder: (identity: string) => void;
}

export function createLeaseClient(options: LeaseClientOptions) {
  const { client, namespace, name, identity, leaseDurationMs, timeoutMs, clock, log } = options;
  let observation: Observation | undefined;
  let holder = "";
  /** The highest epoch in a lease that this process has seen. */
  let seenEpoch = 0;

  function noteLease(next: Observation): void {
    observation = next;
    seenEpoch = Math.max(seenEpoch, epochOf(next.lease.spec));
    const now = next.lease.spec?.holderIdentity ?? "";
    if (now === holder) return;
    holder = now;
    if (holder !== "") options.onHolder(holder);
  }

  const ownSpec = (before: LeaseSpec | undefined) => heldSpec(before, identity, leaseDurationMs, clock.now());

  /** True if there is a lease. */
  async function read(signal: AbortSignal): Promise<boolean> {
    try {
      noteLease(observe(observation, await client.get(LEASES, { namespace, name }, { signal, timeoutMs }), clock.monotonicMs()));
      return true;
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
      return false;
    }
  }

  /** Writes the lease in this process's name. Undefined if another process holds it. */
  async function write(isRenewal: boolean, signal: AbortSignal): Promise<LeaseSpec | undefined> {
    const isKnown = isRenewal && observation !== undefined;
    if (!isKnown && !(await read(signal))) {
      const first = ownSpec(undefined);
      const spec = { ...first, leaseTransitions: Math.max(first.leaseTransitions ?? 0, seenEpoch) };
      const fresh = { metadata: { namespace, name }, spec };
      noteLease({ lease: await client.create(LEASES, fresh, { signal, timeoutMs }), sinceMs: clock.monotonicMs() });
      return spec;
    }
    if (observation === undefined || !mayTake(observation, identity, clock.monotonicMs())) return undefined;
    const { lease } = observation;
    const spec = ownSpec(lease.spec);
    noteLease({ lease: await client.update(LEASES, { ...lease, spec }, { signal, timeoutMs }), sinceMs: clock.monotonicMs() });
    return spec;
  }

  return {
    /** The last observed lease. */
    get observation() {
      return observation;
    },
    /** The last observed holder; "" if there is none. */
    get holder() {
      return holder;
    },
    /**
     * Tries once to take or renew the lease. Undefined if that failed. Never throws.
     * @param isRenewal this process leads, so it need not read the lease that it wrote
     * @returns the monotonic time at which the request was sent, and the epoch
     */
    async hold(isRenewal: boolean, signal: AbortSignal) {
      const sentMs = clock.monotonicMs();
      try {
        const spec = await write(isRenewal, signal);
        return spec === undefined ? undefined : { sentMs, epoch: epochOf(spec) };
      } catch (error) {
        // The failed write may have taken effect, so the next attempt reads first.
        if (isRenewal) observation = undefined;
        if (isStatus(error, "Conflict", "AlreadyExists")) log.debug({ err: error }, "another process has written the lease");
        else if (!signal.aborted) log.warn({ err: error }, "lease could not be acquired or renewed");
        return undefined;
      }
    },
    /** Releases the lease, if this process holds it. Never throws: a lease that is not released expires. */
    async release(releaseTimeoutMs: number): Promise<void> {
      const call = { timeoutMs: releaseTimeoutMs };
      try {
        const lease = observation?.lease ?? (await client.get(LEASES, { namespace, name }, call));
        if (lease.spec?.holderIdentity !== identity) return;
        const spec = releasedSpec(lease.spec, clock.now());
        noteLease({ lease: await client.update(LEASES, { ...lease, spec }, call), sinceMs: clock.monotonicMs() });
      } catch (error) {
        log.warn({ err: error }, "lease could not be released");
      }
    },
  };
}

// Leader election on a Lease, with client-go's protocol. Invariant: this process acts as leader only within renewDeadline
// of the moment it sent its last successful renewal; others take the lease leaseDuration after they saw that renewal at
// the earliest, so two never lead at once. Stopping keeps the lease renewed until the leading work has ended, then
// releases it.
import { type Clock, type Random, sleep } from "../base/clock.ts";
import { isMeshError, MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import { LEASES, type LeaseSpec } from "../kube/client/resources.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import { heldSpec, mayTake, type Observation, observe, releasedSpec } from "./lease-record.ts";

export interface LeaderCallbacks {
  /**
   * Leads until the signal fires, and settles once it does no more. The signal's reason is a MeshError `LEADERSHIP_LOST`
   * (end at once) or `SHUTDOWN` (end in order). If it resolves before the signal, leadership is kept all the same; if
   * it rejects, the lease is released, but for MeshError `DRAIN_TIMEOUT`: then something is still at work, and the lease
   * has to run out.
   */
  onStartedLeading(signal: AbortSignal): Promise<void> | void;
  /** The lease is lost or released, and the leading work has ended. */
  onStoppedLeading?(): void;
  /** Somebody leads: this process or another one. */
  onNewLeader?(identity: string): void;
}

export interface LeaderElectionOptions {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  /** Unique for each process that contends: the pod's name and something random. */
  readonly identity: string;
  readonly callbacks: LeaderCallbacks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Default 15,000. */
  readonly leaseDurationMs?: number;
  /** Default 10,000. */
  readonly renewDeadlineMs?: number;
  /** Default 2,000. */
  readonly retryPeriodMs?: number;
}

/** A contender. `start` resolves at once. */
export interface LeaderElector extends Runnable {
  /** At this very moment: a process that was stopped past its deadline does not lead, before it has noticed too. */
  readonly isLeader: boolean;
  /** The identity of the leader as last seen; "" if there is none, or if it has missed renewals: whoever asks it would ask in vain. */
  readonly leader: string;
  /** Grows with every change of the leader, from 1; undefined unless this process leads at this very moment. */
  readonly epoch: number | undefined;
  /** Somebody has heard of a leader of this epoch, if the lease was deleted since: the next renewal goes beyond it. */
  raiseEpoch(seen: number): void;
}

// Waiting contenders spread their tries over 1 to 2.2 periods, as client-go does.
const JITTER_FACTOR = 1.2;
// Contenders look more often than the leader renews: whoever sees the last renewal late takes the lease late.
const LOOKS_A_PERIOD = 2;
const LOOK_JITTER_FACTOR = 0.2;
// A leader renews every period, and contenders look after half of one.
const MISSED_RENEWALS = 3;
// leaseTransitions is an int32, and a registration may say anything: half of the numbers are left for the leaders to come. With none left the
// API server would refuse every leader after this one.
const MAX_EPOCH = 2 ** 30;

/** @throws MeshError `CONFIG_INVALID` if the times do not leave a margin */
export function createLeaderElector(options: LeaderElectionOptions): LeaderElector {
  const { client, namespace, name, identity, callbacks, clock, random } = options;
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  checkTimes(leaseDurationMs, renewDeadlineMs, retryPeriodMs);
  // Half the deadline, so that a request that hangs on a dead connection leaves time for another one.
  const timeoutMs = renewDeadlineMs / 2;
  const log = options.log.child({ lease: `${namespace}/${name}`, identity });
  const stopping = new AbortController();
  let lifetime: AbortSignal = stopping.signal;
  let observation: Observation | undefined;
  let isLeader = false;
  let leadsUntilMs = 0;
  let epoch = 0;
  let epochFloor = 0;
  /** The highest epoch that this process saw in a lease: one that is made anew after a deletion goes on from there. */
  let newestEpoch = 0;
  let leader = "";
  let running: Promise<void> | undefined;

  function seen(next: Observation): void {
    observation = next;
    newestEpoch = Math.max(newestEpoch, epochOf(next.lease.spec ?? {}));
    const holder = next.lease.spec?.holderIdentity ?? "";
    if (holder === leader) return;
    leader = holder;
    if (holder !== "") guard(() => callbacks.onNewLeader?.(holder));
  }

  function guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      log.error({ err: error }, "leader election callback failed");
    }
  }

  /** Tries once. True if this process holds the lease afterwards. */
  async function acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    // A leader knows what it wrote last, and may spare the read. Any doubt (a conflict) is settled by the next try.
    if (!isLeader || observation === undefined) {
      try {
        seen(observe(observation, await client.get(LEASES, { namespace, name }, { signal, timeoutMs }), clock.monotonicMs()));
      } catch (error) {
        if (!isStatus(error, "NotFound")) throw error;
        epochFloor = Math.max(epochFloor, newestEpoch);
        const spec = ownSpec(undefined);
        seen({
          lease: await client.create(LEASES, { metadata: { namespace, name }, spec }, { signal, timeoutMs }),
          sinceMs: clock.monotonicMs(),
        });
        epoch = epochOf(spec);
        return true;
      }
    }
    if (observation === undefined || !mayTake(observation, identity, clock.monotonicMs())) return false;
    const { lease } = observation;
    const spec = ownSpec(lease.spec);
    seen({ lease: await client.update(LEASES, { ...lease, spec }, { signal, timeoutMs }), sinceMs: clock.monotonicMs() });
    epoch = epochOf(spec);
    return true;
  }

  function ownSpec(before: LeaseSpec | undefined): LeaseSpec {
    const spec = heldSpec(before, identity, leaseDurationMs, clock.now());
    return { ...spec, leaseTransitions: Math.max(spec.leaseTransitions ?? 0, epochFloor) };
  }

  /** The time of sending of a successful try, or undefined. Never throws. */
  async function attempt(signal: AbortSignal): Promise<number | undefined> {
    const sentMs = clock.monotonicMs();
    try {
      return (await acquireOrRenew(signal)) ? sentMs : undefined;
    } catch (error) {
      // What the failed write did is not known: read again before the next one.
      observation = isLeader ? undefined : observation;
      if (isStatus(error, "Conflict", "AlreadyExists")) log.debug({ err: error }, "lease was written by somebody else");
      else if (!signal.aborted) log.warn({ err: error }, "lease could not be acquired or renewed");
      return undefined;
    }
  }

  /** Waits for the lease; the time of sending of the write that got it, or undefined when stopped. */
  async function acquire(): Promise<number | undefined> {
    while (!lifetime.aborted) {
      const sentMs = await attempt(lifetime);
      if (sentMs !== undefined) return sentMs;
      await pause(untilNextLookMs(), lifetime);
    }
    return undefined;
  }

  // The moment when the lease runs out is known, and not slept through.
  function untilNextLookMs(): number {
    const periodMs = retryPeriodMs / LOOKS_A_PERIOD;
    const lookMs = periodMs * (1 + random() * LOOK_JITTER_FACTOR);
    const leaseMs = (observation?.lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    const untilFreeMs = observation === undefined ? 0 : observation.sinceMs + leaseMs - clock.monotonicMs();
    return untilFreeMs > 0 ? Math.min(lookMs, untilFreeMs + periodMs * random() * LOOK_JITTER_FACTOR) : lookMs;
  }

  /** Renews until `until` fires; false if the deadline passed first. */
  async function renew(acquiredMs: number, until: AbortSignal): Promise<boolean> {
    leadsUntilMs = acquiredMs + renewDeadlineMs;
    while (!until.aborted) {
      const expired = new AbortController();
      const timer = clock.after(leadsUntilMs - clock.monotonicMs(), () => expired.abort());
      const signal = AbortSignal.any([until, expired.signal]);
      await pause(retryPeriodMs, signal);
      const sentMs = signal.aborted ? undefined : await attempt(signal);
      timer.cancel();
      if (sentMs !== undefined && clock.monotonicMs() < leadsUntilMs) leadsUntilMs = sentMs + renewDeadlineMs;
      else if (observation !== undefined && leader !== identity) return until.aborted; // seen in somebody else's hands
      // A process that slept past its deadline does not lead, whatever its late renewal says.
      if (clock.monotonicMs() >= leadsUntilMs) return until.aborted;
    }
    return true;
  }

  async function lead(acquiredMs: number): Promise<void> {
    leadsUntilMs = acquiredMs + renewDeadlineMs;
    isLeader = true;
    log.info({ epoch }, "started leading");
    const leading = new AbortController();
    const onStop = () => leading.abort(new MeshError("SHUTDOWN", "leading: shutting down"));
    lifetime.addEventListener("abort", onStop, { once: true });
    if (lifetime.aborted) onStop();
    const idle = new AbortController(); // fires once the leading work has ended after a stop
    const work = runLeading(leading.signal).finally(() => idle.abort());
    const kept = await renew(acquiredMs, idle.signal);
    lifetime.removeEventListener("abort", onStop);
    isLeader = false;
    if (kept) {
      if (await work) await release(); // the work has ended, so whoever takes it next takes it alone
    } else {
      log.warn("lost leadership");
      leading.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease was not renewed in time"));
    }
    await work;
    log.info("stopped leading");
    guard(() => callbacks.onStoppedLeading?.());
  }

  /** False if what it began may still be at work. */
  async function runLeading(signal: AbortSignal): Promise<boolean> {
    try {
      await callbacks.onStartedLeading(signal);
    } catch (error) {
      log.error({ err: error }, "leading failed");
      return !isMeshError(error, "DRAIN_TIMEOUT"); // a leader that does nothing must not keep the lease from those who can
    }
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    return true;
  }

  async function release(): Promise<void> {
    try {
      const lease = observation?.lease ?? (await client.get(LEASES, { namespace, name }, { timeoutMs: retryPeriodMs }));
      if (lease.spec?.holderIdentity !== identity) return;
      const spec = releasedSpec(lease.spec, clock.now());
      const released = await client.update(LEASES, { ...lease, spec }, { timeoutMs: retryPeriodMs });
      seen({ lease: released, sinceMs: clock.monotonicMs() });
    } catch (error) {
      log.warn({ err: error }, "lease could not be released"); // it runs out by itself
    }
  }

  async function run(): Promise<void> {
    while (!lifetime.aborted) {
      const acquiredMs = await acquire();
      if (acquiredMs === undefined) return;
      await lead(acquiredMs);
      await pause(retryPeriodMs * (1 + random() * JITTER_FACTOR), lifetime); // after a failure the others go first
    }
  }

  const leadsNow = () => isLeader && clock.monotonicMs() < leadsUntilMs;
  const pause = (delayMs: number, signal: AbortSignal) => sleep(clock, delayMs, signal).catch(() => {});

  return {
    name: `leader election ${namespace}/${name}`,
    get isLeader() {
      return leadsNow();
    },
    get leader() {
      const sinceMs = observation?.sinceMs ?? Number.NEGATIVE_INFINITY;
      const isRenewed = clock.monotonicMs() < sinceMs + Math.min(renewDeadlineMs, MISSED_RENEWALS * retryPeriodMs);
      if (leader === identity) return leadsNow() ? leader : ""; // nobody is sent to one that is about to end
      return isRenewed ? leader : "";
    },
    get epoch() {
      return leadsNow() ? epoch : undefined;
    },
    raiseEpoch(seen) {
      if (seen <= MAX_EPOCH) epochFloor = Math.max(epochFloor, seen);
    },
    async start(signal) {
      lifetime = AbortSignal.any([signal, stopping.signal]);
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function epochOf({ leaseTransitions = 0 }: LeaseSpec): number {
  return leaseTransitions + 1;
}

function checkTimes(leaseDurationMs: number, renewDeadlineMs: number, retryPeriodMs: number): void {
  if (leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER_FACTOR && retryPeriodMs > 0) return;
  throw new MeshError("CONFIG_INVALID", "electing a leader: leaseDuration > renewDeadline > 1.2 * retryPeriod > 0 must hold");
}

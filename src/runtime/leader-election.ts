// Leader election on a Lease, with client-go's protocol. Invariant: this process acts as leader only within renewDeadline
// of the moment it sent its last successful renewal; others take the lease leaseDuration after they saw that renewal at
// the earliest, so two never lead at once. Stopping keeps the lease renewed until the leading work has ended, then
// releases it.
import { type Clock, type Random, sleep } from "../base/clock.ts";
import { MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import { LEASES } from "../kube/client/resources.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import { heldSpec, mayTake, type Observation, observe, releasedSpec } from "./lease-record.ts";

export interface LeaderCallbacks {
  /**
   * Leads until the signal fires, and settles once it does no more. The signal's reason is a MeshError `LEADERSHIP_LOST`
   * (end at once) or `SHUTDOWN` (end in order). If it resolves before the signal, leadership is kept all the same; if
   * it rejects, the lease is released.
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
  readonly isLeader: boolean;
  /** The identity of the leader as last seen; "" if there is none. */
  readonly leader: string;
}

// Waiting contenders spread their tries over 1 to 2.2 periods, as client-go does.
const JITTER_FACTOR = 1.2;

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
  let leader = "";
  let running: Promise<void> | undefined;

  function seen(next: Observation): void {
    observation = next;
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
        const spec = heldSpec(undefined, identity, leaseDurationMs, clock.now());
        seen({
          lease: await client.create(LEASES, { metadata: { namespace, name }, spec }, { signal, timeoutMs }),
          sinceMs: clock.monotonicMs(),
        });
        return true;
      }
    }
    if (observation === undefined || !mayTake(observation, identity, clock.monotonicMs())) return false;
    const { lease } = observation;
    const spec = heldSpec(lease.spec, identity, leaseDurationMs, clock.now());
    seen({ lease: await client.update(LEASES, { ...lease, spec }, { signal, timeoutMs }), sinceMs: clock.monotonicMs() });
    return true;
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
      await pause(retryPeriodMs * (1 + random() * JITTER_FACTOR), lifetime);
    }
    return undefined;
  }

  /** Renews until `until` fires; false if the deadline passed first. */
  async function renew(acquiredMs: number, until: AbortSignal): Promise<boolean> {
    let deadlineMs = acquiredMs + renewDeadlineMs;
    while (!until.aborted) {
      const expired = new AbortController();
      const timer = clock.after(deadlineMs - clock.monotonicMs(), () => expired.abort());
      const signal = AbortSignal.any([until, expired.signal]);
      await pause(retryPeriodMs, signal);
      const sentMs = signal.aborted ? undefined : await attempt(signal);
      timer.cancel();
      if (sentMs !== undefined) deadlineMs = sentMs + renewDeadlineMs;
      else if (observation !== undefined && leader !== identity) return until.aborted; // seen in somebody else's hands
      // A process that slept past its deadline does not lead, whatever its late renewal says.
      if (clock.monotonicMs() >= deadlineMs) return until.aborted;
    }
    return true;
  }

  async function lead(acquiredMs: number): Promise<void> {
    isLeader = true;
    log.info("started leading");
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
      await release(); // the work has ended, so whoever takes it next takes it alone
    } else {
      log.warn("lost leadership");
      leading.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease was not renewed in time"));
    }
    await work;
    log.info("stopped leading");
    guard(() => callbacks.onStoppedLeading?.());
  }

  async function runLeading(signal: AbortSignal): Promise<void> {
    try {
      await callbacks.onStartedLeading(signal);
    } catch (error) {
      log.error({ err: error }, "leading failed");
      return; // a leader that does nothing must not keep the lease from those who can
    }
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
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

  const pause = (delayMs: number, signal: AbortSignal) => sleep(clock, delayMs, signal).catch(() => {});

  return {
    name: `leader election ${namespace}/${name}`,
    get isLeader() {
      return isLeader;
    },
    get leader() {
      return leader;
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

function checkTimes(leaseDurationMs: number, renewDeadlineMs: number, retryPeriodMs: number): void {
  if (leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER_FACTOR && retryPeriodMs > 0) return;
  throw new MeshError("CONFIG_INVALID", "electing a leader: leaseDuration > renewDeadline > 1.2 * retryPeriod > 0 must hold");
}

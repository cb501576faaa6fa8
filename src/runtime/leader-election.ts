// Leader election on a Lease, by client-go's protocol. Invariant: this process leads only until renewDeadline
// after it sent its last successful renewal. Another takes the lease no earlier than leaseDuration after it
// saw that renewal, so two processes never lead at the same time.
import { onAbort, untilAborted } from "../base/abort.ts";
import { type Random, sleep } from "../base/clock.ts";
import { isMeshError, MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import type { Logger } from "../base/log.ts";
import { initialLeaderState, type LeaderInput, type LeaderState, nextLeaderState } from "./leader-state.ts";
import { createLeaseClient, type LeaseOptions } from "./lease-client.ts";

export interface LeaderCallbacks {
  /**
   * Leads until the signal fires, and resolves when the leading work has ended. The signal's reason is a
   * MeshError `LEADERSHIP_LOST` (end immediately) or `SHUTDOWN` (end in order). If it resolves before the
   * signal, leadership is kept. If it rejects, the lease is released, except for MeshError `DRAIN_TIMEOUT`:
   * then a part of the work still runs, and the lease has to expire.
   */
  onStartedLeading(signal: AbortSignal): Promise<void> | void;
  /** The lease is lost or released, and the leading work has ended. */
  onStoppedLeading?(): void;
  /** There is a new leader: this process or another one. */
  onNewLeader?(identity: string): void;
}

interface LeaderElectionOptions extends LeaseOptions {
  readonly callbacks: LeaderCallbacks;
  readonly random: Random;
  /** Default 15,000. */
  readonly leaseDurationMs?: number;
  /** Default 10,000. */
  readonly renewDeadlineMs?: number;
  /** Default 2,000. */
  readonly retryPeriodMs?: number;
}

/** `start` resolves immediately. */
export interface LeaderElector extends Runnable {
  /** True if this process leads at this moment. A process that slept past its deadline does not. */
  readonly isLeader: boolean;
  /** The identity of the last observed leader; "" if there is none, or if the leader has missed renewals. */
  readonly leader: string;
  /** The number of the leadership term; undefined unless this process leads at this moment. */
  readonly epoch: number | undefined;
}

/** After it has led, a process waits 1 to 2.2 retry periods before it contends again, as in client-go. */
const JITTER_FACTOR = 1.2;
/** A contender that reads the last renewal late takes the lease late, so it reads often. */
const READS_PER_PERIOD = 2;
const READ_JITTER_FACTOR = 0.2;
/** Retry periods without a renewal after which `leader` is "". */
const MISSED_RENEWALS = 3;

/** @throws MeshError `CONFIG_INVALID` if the times leave no margin */
export function createLeaderElector(options: LeaderElectionOptions): LeaderElector {
  const { namespace, name, identity, callbacks, clock, random } = options;
  const { leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
  checkTimes(leaseDurationMs, renewDeadlineMs, retryPeriodMs);
  const log = options.log.child({ lease: `${namespace}/${name}`, identity });
  const lease = createLeaseClient({
    ...options,
    leaseDurationMs,
    log,
    // Half of the deadline, so that after a request on a dead connection there is time for another request.
    timeoutMs: renewDeadlineMs / 2,
    onHolder: (holder) => guard(() => callbacks.onNewLeader?.(holder)),
  });
  const stopController = new AbortController();
  let state = initialLeaderState;
  let work: ReturnType<typeof startLeading> | undefined;
  let runEnd: Promise<void> | undefined;

  function guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      log.error({ err: error }, "leader election callback failed");
    }
  }

  function become(next: LeaderState, shutdown: AbortSignal): void {
    const before = state;
    state = next;
    if (before.kind === next.kind) return;
    switch (next.kind) {
      case "leading":
        log.info({ epoch: next.epoch }, "started leading");
        work = startLeading((signal) => callbacks.onStartedLeading(signal), shutdown, log);
        return;
      case "lost":
        log.warn("lost leadership");
        work?.abort(new MeshError("LEADERSHIP_LOST", "leading: the lease was not renewed in time"));
        return;
      case "resting":
        log.info("stopped leading");
        guard(() => callbacks.onStoppedLeading?.());
        return;
      default:
        return;
    }
  }

  async function step(shutdown: AbortSignal): Promise<LeaderInput> {
    switch (state.kind) {
      case "contending": {
        const input = await tryToHold(false, shutdown);
        if (input.kind === "not-held") await pause(untilNextReadMs(), shutdown);
        return input;
      }
      case "leading":
        return renew(state.untilMs);
      case "lost":
        return inputOfEndedWork();
      case "releasing":
        await lease.release(retryPeriodMs);
        return { kind: "released" };
      case "resting":
        await pause(retryPeriodMs * (1 + random() * JITTER_FACTOR), shutdown);
        return { kind: "rested" };
      case "stopped":
        return { kind: "stop" };
      default:
        return state satisfies never;
    }
  }

  async function tryToHold(isRenewal: boolean, signal: AbortSignal): Promise<LeaderInput> {
    const heldLease = signal.aborted ? undefined : await lease.hold(isRenewal, signal);
    const nowMs = clock.monotonicMs();
    if (heldLease !== undefined)
      return { kind: "held", epoch: heldLease.epoch, untilMs: heldLease.sentMs + renewDeadlineMs, nowMs };
    return { kind: "not-held", isTaken: lease.observation !== undefined && lease.holder !== identity, nowMs };
  }

  /** Renews once, after a period. Ends early if the work has ended or the deadline has passed. */
  async function renew(untilMs: number): Promise<LeaderInput> {
    const expiry = new AbortController();
    const timer = clock.after(untilMs - clock.monotonicMs(), () => expiry.abort());
    const signal = AbortSignal.any(work === undefined ? [expiry.signal] : [work.ended, expiry.signal]);
    await pause(retryPeriodMs, signal);
    const input = await tryToHold(true, signal);
    timer.cancel();
    return work?.ended.aborted ? inputOfEndedWork() : input;
  }

  async function inputOfEndedWork(): Promise<LeaderInput> {
    return { kind: "work-ended", isDrained: (await work?.isDrained) ?? true };
  }

  // Contenders know when the lease expires, and read it shortly after that time at the latest.
  function untilNextReadMs(): number {
    const { observation } = lease;
    const periodMs = retryPeriodMs / READS_PER_PERIOD;
    const readMs = periodMs * (1 + random() * READ_JITTER_FACTOR);
    const leaseMs = (observation?.lease.spec?.leaseDurationSeconds ?? 0) * 1000;
    const untilFreeMs = observation === undefined ? 0 : observation.sinceMs + leaseMs - clock.monotonicMs();
    return untilFreeMs > 0 ? Math.min(readMs, untilFreeMs + periodMs * random() * READ_JITTER_FACTOR) : readMs;
  }

  async function run(shutdown: AbortSignal): Promise<void> {
    while (state.kind !== "stopped") {
      if (shutdown.aborted) become(nextLeaderState(state, { kind: "stop" }), shutdown);
      become(nextLeaderState(state, await step(shutdown)), shutdown);
    }
  }

  const leadsNow = () => state.kind === "leading" && clock.monotonicMs() < state.untilMs;
  const pause = (delayMs: number, signal: AbortSignal) => sleep(clock, delayMs, signal).catch(() => {});

  return {
    name: `leader election ${namespace}/${name}`,
    get isLeader() {
      return leadsNow();
    },
    get leader() {
      if (lease.holder === identity) return leadsNow() ? identity : ""; // proxies must not connect to a leader that is about to end
      const sinceMs = lease.observation?.sinceMs ?? Number.NEGATIVE_INFINITY;
      const isRenewed = clock.monotonicMs() < sinceMs + Math.min(renewDeadlineMs, MISSED_RENEWALS * retryPeriodMs);
      return isRenewed ? lease.holder : "";
    },
    get epoch() {
      return state.kind === "leading" && leadsNow() ? state.epoch : undefined;
    },
    async start(signal) {
      runEnd = run(AbortSignal.any([signal, stopController.signal]));
    },
    async stop() {
      stopController.abort();
      await runEnd;
    },
  };
}

function checkTimes(leaseDurationMs: number, renewDeadlineMs: number, retryPeriodMs: number): void {
  if (leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * JITTER_FACTOR && retryPeriodMs > 0) return;
  throw new MeshError("CONFIG_INVALID", "electing a leader: leaseDuration > renewDeadline > 1.2 * retryPeriod > 0 must hold");
}

/**
 * Begins the work of one term as leader. It has ended only when `work` has returned and the signal has fired,
 * so that a function that only starts something keeps the leadership.
 * @param shutdown ends the work in order
 */
function startLeading(work: LeaderCallbacks["onStartedLeading"], shutdown: AbortSignal, log: Logger) {
  const leading = new AbortController();
  const ended = new AbortController();
  const unlink = onAbort(shutdown, () => leading.abort(new MeshError("SHUTDOWN", "leading: shutting down")));

  const run = async (): Promise<boolean> => {
    try {
      await work(leading.signal);
    } catch (error) {
      log.error({ err: error }, "leading failed");
      return !isMeshError(error, "DRAIN_TIMEOUT"); // a leader without work must not prevent other processes from leading
    }
    await untilAborted(leading.signal);
    return true;
  };
  const isDrained = run().finally(() => {
    unlink();
    ended.abort();
  });
  return {
    /** Fires when the work has ended. */
    ended: ended.signal,
    /** False if a part of the work may still run. Never rejects. */
    isDrained,
    abort: (reason: MeshError) => leading.abort(reason),
  };
}

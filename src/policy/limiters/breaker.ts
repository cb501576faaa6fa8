// A circuit breaker, which opens when its bucket runs out or when requests fail. Invariant: an open breaker
// lets one request through at a time, which decides whether it closes.
import type { BreakerSpec, FailureTrigger } from "../policy.ts";
import { type BreakerEvent, type BreakerState, CLOSED, nextBreakerState } from "./breaker-state.ts";
import { hasFailed, type Limiter, PASS, type Ticket } from "./limiter.ts";
import { createTokenBucket } from "./token-bucket.ts";

export interface BreakerOptions {
  readonly spec: BreakerSpec;
  readonly startMs: number;
  readonly recovery: string;
  /** The state before a restart of the process. */
  readonly before?: BreakerState | undefined;
  /** Called when the breaker opens, half opens or closes. */
  readonly changed: () => void;
}

/** The wait of a request that comes while another one decides. */
const PROBE_WAIT_MS = 1_000;

export function createBreaker({ spec, startMs, recovery: first, before = CLOSED, changed }: BreakerOptions): Limiter {
  const { trigger, sleepMs = Number.POSITIVE_INFINITY } = spec;
  let bucket = spec.bucket && createTokenBucket(spec.bucket, startMs);
  const failures = trigger && createFailureWindow(trigger);
  // A process that ended in a probe never learns its outcome.
  let state = notLater(nextBreakerState(before, { kind: "probe-lost" }), startMs);
  let recovery = first;

  const step = (event: BreakerEvent) => {
    const next = nextBreakerState(state, event);
    if (next === state) return;
    state = next;
    if (state.kind === "closed") failures?.clear();
    changed();
  };
  const isClosed = () => state.kind === "closed";
  const leftMs = (sinceMs: number, nowMs: number) => sinceMs + sleepMs - nowMs;

  /** The ticket of the request that decides. A late answer to an earlier one decides nothing. */
  let probe: Ticket | undefined;
  const createProbe = (): Ticket => {
    const ticket: Ticket = {
      settle(outcome, nowMs) {
        if (ticket !== probe) return;
        const isFailure = hasFailed(outcome, trigger?.slowerThanMs);
        if (isFailure === undefined) step({ kind: "probe-lost" });
        else if (trigger !== undefined && isFailure) step({ kind: "probe-failed", nowMs });
        else step({ kind: "probe-passed" });
      },
    };
    return ticket;
  };
  const countTicket: Ticket = {
    settle(outcome, nowMs) {
      const isFailure = hasFailed(outcome, trigger?.slowerThanMs);
      if (isFailure === undefined || state.kind !== "closed") return;
      if (failures?.count(isFailure, nowMs)) step({ kind: "tripped", cause: "failures", nowMs, recovery });
    },
  };
  step({ kind: "recovered", recovery });
  return {
    ask(request, nowMs) {
      if (state.kind === "probing") return { kind: "open", waitMs: PROBE_WAIT_MS };
      const waitMs = state.kind === "open" ? leftMs(state.sinceMs, nowMs) : 0;
      if (waitMs > 0) return { kind: "open", waitMs };
      const decision = bucket?.ask(request, nowMs) ?? PASS;
      // The refused request opens the breaker, so it is answered like those that follow.
      if (decision.kind === "limited" && state.kind === "closed") return { kind: "open", waitMs: sleepMs };
      return decision;
    },
    refuse(_request, nowMs) {
      step({ kind: "tripped", cause: "rate", nowMs, recovery });
    },
    charge(request, nowMs) {
      bucket?.charge(request, nowMs);
      if (state.kind !== "open") return failures === undefined ? undefined : countTicket;
      step({ kind: "probe" });
      probe = createProbe();
      return probe;
    },
    state: () => (isClosed() ? "Closed" : "Opened"),
    recover(next, nowMs) {
      recovery = next;
      if (isClosed()) return;
      step({ kind: "recovered", recovery });
      // An empty bucket would open the breaker again immediately.
      if (isClosed()) bucket = spec.bucket && createTokenBucket(spec.bucket, nowMs);
    },
    stored: () => state,
  };
}

/** If the clock was set back between two processes, the breaker's time begins now. */
function notLater(state: BreakerState, nowMs: number): BreakerState {
  return state.kind === "closed" ? state : { ...state, sinceMs: Math.min(state.sinceMs, nowMs) };
}

interface Slot {
  readonly number: number;
  requests: number;
  failures: number;
}

const SLOTS = 10;

/** Counts the failures of the last requests, in slots of time, so that it needs constant memory. */
function createFailureWindow(trigger: FailureTrigger) {
  const slotMs = trigger.windowMs / SLOTS;
  let slots: Slot[] = [];
  let inARow = 0;
  return {
    /** True if the trigger fires now. */
    count(failed: boolean, nowMs: number): boolean {
      const number = Math.floor(nowMs / slotMs);
      slots = slots.filter((slot) => slot.number > number - SLOTS);
      if (slots.at(-1)?.number !== number) slots.push({ number, requests: 0, failures: 0 });
      const current = slots.at(-1);
      if (current !== undefined) {
        current.requests++;
        if (failed) current.failures++;
      }
      inARow = failed ? inARow + 1 : 0;
      return failed && (isTooLongARow(trigger, inARow) || isTooLargeAShare(trigger, slots));
    },
    clear() {
      slots = [];
      inARow = 0;
    },
  };
}

function isTooLongARow({ consecutive }: FailureTrigger, inARow: number): boolean {
  return consecutive !== undefined && inARow >= consecutive;
}

function isTooLargeAShare({ percent, minimumRequests }: FailureTrigger, slots: readonly Slot[]): boolean {
  if (percent === undefined) return false;
  const requests = slots.reduce((sum, slot) => sum + slot.requests, 0);
  const failures = slots.reduce((sum, slot) => sum + slot.failures, 0);
  return requests >= minimumRequests && failures * 100 >= percent * requests;
}

// A circuit breaker, which opens when its bucket runs out or when requests fail. Invariants: an open breaker
// becomes half-open when its time is over, without a request; no edit closes one that is not closed.
import type { BreakerSpec } from "../policy.ts";
import {
  type BreakerEvent,
  type BreakerState,
  CLOSED,
  nextBreakerState,
  type OpenCause,
  type Opened,
  openedOf,
} from "./breaker-state.ts";
import { createDeleteBudget, UNCOUNTED } from "./delete-budget.ts";
import { createFailureWindow } from "./failure-window.ts";
import { hasFailed, type Limiter, type LimiterState, type MoveReason, outcomeText, PASS, type Ticket } from "./limiter.ts";
import { createRamp } from "./ramp.ts";
import { createTokenBucket, editedBy } from "./token-bucket.ts";

export interface BreakerOptions {
  readonly spec: BreakerSpec;
  readonly startMs: number;
  readonly recovery: string;
  /** The state before a restart of the process, or before the rule was gone for a time. */
  readonly before?: Opened | undefined;
  /** Called when the breaker opens, half opens or closes. */
  readonly moved: (to: LimiterState, reason: MoveReason, figure: string) => void;
}

/** The wait of a request that finds all places of the ramp taken. */
const TEST_WAIT_MS = 1_000;
const STATES = { closed: "Closed", open: "Opened", "half-open": "HalfOpen" } as const;

export function createBreaker({ startMs, moved, before, ...first }: BreakerOptions): Limiter {
  let { spec, recovery } = first;
  let bucket = bucketOf(spec, startMs);
  let failures = spec.trigger && createFailureWindow(spec.trigger);
  let slowerThanMs = spec.trigger?.slowerThanMs;
  let ramp = createRamp();
  let state: BreakerState = before ? { ...before, kind: "open" } : CLOSED;
  let closedMs: number | undefined;

  const isClosed = () => state.kind === "closed";
  const sleepMs = () => spec.sleepMs ?? Number.POSITIVE_INFINITY;
  const step = (event: BreakerEvent, reason: MoveReason, nowMs: number) => {
    const next = nextBreakerState(state, event);
    if (next === state) return;
    state = next;
    if (state.kind === "half-open") ramp = createRamp();
    if (state.kind === "closed") {
      failures?.clear();
      closedMs = nowMs;
    }
    moved(STATES[state.kind], reason, state.kind === "closed" ? "" : state.figure);
  };
  const trip = (cause: OpenCause, figure: string, nowMs: number) =>
    step({ kind: "tripped", sinceMs: nowMs, cause, figure, recovery }, cause, nowMs);

  /** The ticket of a request that tests the server. Its outcome counts as long as the breaker stays half-open. */
  const testTicket = (begunMs: number): Ticket => {
    const own = ramp;
    own.begin(begunMs);
    return {
      settle(outcome, nowMs) {
        own.end(begunMs);
        if (state.kind !== "half-open" || own !== ramp) return;
        const isFailure = hasFailed(outcome, slowerThanMs);
        if (isFailure === undefined) return;
        if (isFailure && spec.trigger !== undefined)
          trip("failures", `a request that tested the server failed, ${outcomeText(outcome)}`, nowMs);
        // A quiet breaker need not wait for all rounds.
        else if (own.pass() || nowMs - state.halfOpenMs >= sleepMs()) step({ kind: "tested" }, "tests", nowMs);
      },
    };
  };
  const countTicket: Ticket = {
    settle(outcome, nowMs) {
      if (state.kind !== "closed") return;
      const isFailure = hasFailed(outcome, slowerThanMs);
      if (isFailure === undefined) return;
      const figure = failures?.count(isFailure, outcome, nowMs);
      if (figure !== undefined) trip("failures", figure, nowMs);
    },
  };
  const isOver = (nowMs: number) => state.kind !== "closed" && nowMs >= state.sinceMs + sleepMs();
  return {
    ask(request, nowMs) {
      if (state.kind === "open") return { kind: "open", waitMs: state.sinceMs + sleepMs() - nowMs };
      if (state.kind === "half-open" && ramp.isFull(nowMs)) return { kind: "open", waitMs: TEST_WAIT_MS };
      const decision = bucket?.ask(request, nowMs) ?? PASS;
      if (decision === UNCOUNTED) return decision;
      // The refused request opens the breaker, so it is answered like those that follow.
      return decision === PASS ? PASS : { kind: "open", waitMs: sleepMs(), opens: true };
    },
    refuse(request, nowMs) {
      if (bucket !== undefined && bucket.ask(request, nowMs) !== UNCOUNTED) trip("rate", bucket.figure(request, nowMs), nowMs);
    },
    charge(request, nowMs) {
      bucket?.charge(request, nowMs);
      if (state.kind === "half-open") return testTicket(nowMs);
      return failures === undefined ? undefined : countTicket;
    },
    state: () => STATES[state.kind],
    edit(next, nowMs) {
      if (next.kind !== "breaker") return false;
      if (bucket?.edit(next, nowMs) !== true) bucket = bucketOf(next, nowMs);
      const isSameTrigger = JSON.stringify(next.trigger) === JSON.stringify(spec.trigger);
      if (!isSameTrigger) failures = next.trigger && createFailureWindow(next.trigger);
      spec = next;
      slowerThanMs = spec.trigger?.slowerThanMs;
      return true;
    },
    figures: (nowMs) => ({
      ...(bucket && { tokens: bucket.tokensAt(nowMs) }),
      ...(failures && { failures: failures.totals(nowMs) }),
      ...(state.kind === "half-open" && { tests: { underWay: ramp.underWay, atMost: ramp.width } }),
    }),
    breaker: {
      get opened() {
        return openedOf(state);
      },
      get sinceMs() {
        if (state.kind === "closed") return closedMs;
        return state.kind === "open" ? state.sinceMs : state.halfOpenMs;
      },
      get dueMs() {
        return state.kind === "open" ? state.sinceMs + sleepMs() : Number.POSITIVE_INFINITY;
      },
      advance(nowMs) {
        if (isOver(nowMs)) step({ kind: "elapsed", nowMs }, "window", nowMs);
        else step({ kind: "prolonged" }, "edit", nowMs);
      },
      recover(next, nowMs) {
        if (next !== "") recovery = next; // a text that was removed and comes back is no new one
        if (isClosed()) return;
        step({ kind: "recovered", recovery: next }, "recovery", nowMs);
        // An empty bucket would open the breaker again immediately.
        if (isClosed()) bucket?.fill(nowMs);
      },
    },
  };
}

/** A spec has one of them, or none. */
function bucketOf({ bucket, deletes }: BreakerSpec, startMs: number) {
  if (bucket !== undefined) return editedBy(createTokenBucket(bucket, startMs), (next: BreakerSpec) => next.bucket);
  return deletes && editedBy(createDeleteBudget(deletes), (next: BreakerSpec) => next.deletes);
}

// The interface of all limiters. Invariant: `ask` changes nothing, so that a request that one rule refuses
// costs nothing in another one. Times are milliseconds of one clock that never goes back.
import type { LimiterSpec } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";
import type { OpenCause, Opened } from "./breaker-state.ts";

export type Decision =
  | { readonly kind: "pass" }
  /** The request may come again after `waitMs`; Infinity if no wait helps. */
  | { readonly kind: "limited"; readonly waitMs: number }
  /** Nothing passes for `waitMs`; Infinity until a person acts. `opens`: this very request opens the breaker. */
  | { readonly kind: "open"; readonly waitMs: number; readonly opens?: true };

/** The only decision of this kind: it is compared by identity. */
export const PASS: Decision = { kind: "pass" };

export type LimiterState = "Closed" | "HalfOpen" | "Opened";

/** Why a breaker has changed its state. Bounded, because it is a label. */
export type MoveReason =
  | OpenCause
  /** Its time is over. */
  | "window"
  /** Enough requests have passed. */
  | "tests"
  /** A person has asked for it. */
  | "recovery"
  /** An edit has made its time longer. */
  | "edit";

export type Outcome =
  // `tookMs` is from the request to the headers of the answer, without the time in the proxy's own queues.
  // `isByDesign`: the status is what the request asked for, and says nothing of the server's health.
  | { readonly kind: "answered"; readonly status: number; readonly tookMs: number; readonly isByDesign?: boolean }
  /** The connection failed. */
  | { readonly kind: "failed" }
  /** The client left after `afterMs` of waiting for the server. */
  | { readonly kind: "abandoned"; readonly afterMs: number };

/** Tells a limiter the outcome of a request that it has let pass. */
export interface Ticket {
  /** The answer has begun, or will not come. Called once. */
  settle?(outcome: Outcome, nowMs: number): void;
  /** The request is over. Called once, after `settle`. */
  release?(): void;
}

export interface Limiter {
  ask(request: PolicyRequest, nowMs: number): Decision;
  /** The request passes. */
  charge(request: PolicyRequest, nowMs: number): Ticket | undefined;
  /** The request is refused by this limiter's decision, which is "limited" or has `opens`. */
  refuse?(request: PolicyRequest, nowMs: number): void;
  /** Absent: always "Closed". */
  state?(): LimiterState;
  /** Takes the new form of the rule and keeps its state. False: the form is of another kind. */
  edit(spec: LimiterSpec, nowMs: number): boolean;
  /** How close it is to its limit, for people. */
  figures(nowMs: number): Figures;
  readonly breaker?: BreakerControl;
  /** Only of a bucket that pods divide: see shared-bucket.ts. */
  setShare?(millionths: number, nowMs: number): void;
  wantsMore?(nowMs: number): boolean;
}

export interface BreakerControl {
  /** What a restart must not lose; undefined while the breaker is closed. */
  readonly opened: Opened | undefined;
  /** When its state began; undefined if it has been closed since the start of the process. */
  readonly sinceMs: number | undefined;
  /** When `advance` has something to do: its time is over. */
  readonly dueMs: number;
  /** Must be called before `ask` once the time has come, and after each edit. */
  advance(nowMs: number): void;
  /** The rule has this `recovery` now. A breaker that closes by it has a full bucket again. */
  recover(recovery: string, nowMs: number): void;
}

export interface Figures {
  readonly tokens?: number;
  readonly inFlight?: number;
  /** Objects with a bucket of their own. The tokens are those of the others. */
  readonly objects?: number;
  /** Of a bucket that pods divide. */
  readonly shareInMillionths?: number;
  /** Objects with failures. */
  readonly failing?: number;
  /** Of the requests within the window of the trigger. */
  readonly failures?: { readonly requests: number; readonly failures: number; readonly inARow: number };
  /** Requests that test the server: the breaker is half-open. */
  readonly tests?: { readonly underWay: number; readonly atMost: number };
}

/** kube-apiserver gives up a request after this time (--request-timeout), so a longer silence is a failure. */
export const SILENT_MS = 60_000;

/**
 * Whether the server has trouble. A 404 or a 409 is an ordinary answer. Undefined if the outcome says
 * nothing: the client left before the server was late.
 * @param slowerThanMs an answer that takes longer is a failure; default: no answer is too slow
 */
export function hasFailed(outcome: Outcome, slowerThanMs?: number): boolean | undefined {
  switch (outcome.kind) {
    case "failed":
      return true;
    case "abandoned":
      return outcome.afterMs > (slowerThanMs ?? SILENT_MS) ? true : undefined;
    case "answered":
      if (slowerThanMs !== undefined && outcome.tookMs > slowerThanMs) return true;
      return outcome.isByDesign !== true && (outcome.status >= 500 || outcome.status === 429);
    default:
      return outcome satisfies never;
  }
}

/** The end of a sentence about a failure: "12 of 20 requests failed, the last with 503". */
export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case "failed":
      return "without an answer";
    case "abandoned":
      return `without an answer for ${seconds(outcome.afterMs)} s`;
    case "answered":
      return outcome.status >= 500 || outcome.status === 429 ? `with ${outcome.status}` : `after ${seconds(outcome.tookMs)} s`;
    default:
      return outcome satisfies never;
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}

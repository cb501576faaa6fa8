// The interface of all limiters. Invariant: `ask` changes nothing, so that all rules are asked before any is
// charged: a request that one rule refuses costs nothing in another one. Times are milliseconds of one clock
// that never goes back.
import type { PolicyRequest } from "../policy-request.ts";
import type { BreakerState } from "./breaker-state.ts";

/** A limiter's decision about one request. */
export type Decision =
  | { readonly kind: "pass" }
  /** The request may come again after `waitMs`; Infinity if no wait helps. */
  | { readonly kind: "limited"; readonly waitMs: number }
  /** Nothing passes for `waitMs`; Infinity until a person acts. */
  | { readonly kind: "open"; readonly waitMs: number };

export const PASS: Decision = { kind: "pass" };

/** The outcome of a request that passed. */
export type Outcome =
  /** The time is from the request to the headers of the answer. */
  | { readonly kind: "answered"; readonly status: number; readonly tookMs: number }
  /** The connection failed. */
  | { readonly kind: "failed" }
  /** The client left before the answer came. */
  | { readonly kind: "abandoned" };

/** The end of a request that has passed, as a limiter needs to hear of it. */
export interface Ticket {
  /** The answer has begun, or will not come. Called once. */
  settle?(outcome: Outcome, nowMs: number): void;
  /** The request is over. Called once, after `settle`. */
  release?(): void;
}

/** For status and metrics. */
export type LimiterState = "Closed" | "Opened";

export interface Limiter {
  /** The decision about the request if it came now. Changes nothing. */
  ask(request: PolicyRequest, nowMs: number): Decision;
  /** The request passes. */
  charge(request: PolicyRequest, nowMs: number): Ticket | undefined;
  /** The request was refused because this limiter's decision was not "pass". */
  refuse?(request: PolicyRequest, nowMs: number): void;
  state(): LimiterState;
  /** The state that a restart of the process must not lose; absent if there is none. */
  stored?(): BreakerState;
  /** The rule's `recovery` has this text now. A breaker that closes by it has a full bucket again. */
  recover?(recovery: string, nowMs: number): void;
}

/** True for an outcome that shows that the server has trouble. A 404 or a 409 is an ordinary answer. */
export function isFailure(outcome: Outcome): boolean {
  if (outcome.kind !== "answered") return outcome.kind === "failed";
  return outcome.status >= 500 || outcome.status === 429;
}

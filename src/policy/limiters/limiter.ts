// The interface of all limiters. Invariant: `ask` changes nothing, so that a request that one rule refuses
// costs nothing in another one. Times are milliseconds of one clock that never goes back.
import type { PolicyRequest } from "../policy-request.ts";
import type { BreakerState } from "./breaker-state.ts";

export type Decision =
  | { readonly kind: "pass" }
  /** The request may come again after `waitMs`; Infinity if no wait helps. */
  | { readonly kind: "limited"; readonly waitMs: number }
  /** Nothing passes for `waitMs`; Infinity until a person acts. */
  | { readonly kind: "open"; readonly waitMs: number };

export const PASS: Decision = { kind: "pass" };

export type Outcome =
  /** The time is from the request to the headers of the answer. */
  | { readonly kind: "answered"; readonly status: number; readonly tookMs: number }
  /** The connection failed. */
  | { readonly kind: "failed" }
  /** The client left before the answer came. */
  | { readonly kind: "abandoned" };

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
  /** The request is refused because this limiter's decision was not "pass". */
  refuse?(request: PolicyRequest, nowMs: number): void;
  state(): "Closed" | "Opened";
  /** The process must not lose this state when it restarts. */
  stored?(): BreakerState;
  /** The rule has this `recovery` now. A breaker that closes by it has a full bucket again. */
  recover?(recovery: string, nowMs: number): void;
}

/** True if the server has trouble. A 404 or a 409 is an ordinary answer. */
export function isFailure(outcome: Outcome): boolean {
  if (outcome.kind !== "answered") return outcome.kind === "failed";
  return outcome.status >= 500 || outcome.status === 429;
}

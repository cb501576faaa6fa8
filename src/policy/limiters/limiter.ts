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
  /** The request is refused because this limiter's decision was not "pass". */
  refuse?(request: PolicyRequest, nowMs: number): void;
  state(): "Closed" | "Opened";
  /** The process must not lose this state when it restarts. */
  stored?(): BreakerState;
  /** Only of a bucket that pods divide: see shared-bucket.ts. */
  setShare?(millionths: number, nowMs: number): void;
  wantsMore?(nowMs: number): boolean;
  /** The rule has this `recovery` now. A breaker that closes by it has a full bucket again. */
  recover?(recovery: string, nowMs: number): void;
}

/** kube-apiserver gives up a request after this time (--request-timeout), so a longer silence is a failure. */
const SILENT_MS = 60_000;

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

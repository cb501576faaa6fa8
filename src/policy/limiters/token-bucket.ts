// A token bucket. Invariant: in any time t at most burst + perSecond * t requests pass. A refused request
// takes no token, so a flood of refused requests does not extend the wait.
import type { BucketSpec } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";
import { type Decision, type Limiter, PASS } from "./limiter.ts";

export interface TokenBucket {
  ask(request: PolicyRequest, nowMs: number): Decision;
  take(request: PolicyRequest, nowMs: number): void;
}

/** Tokens that rounding may have taken from a full bucket. */
const EPSILON = 1e-9;

/** The bucket is full at first. */
export function createTokenBucket({ perSecond, burst }: BucketSpec, startMs: number): TokenBucket {
  let tokens = burst;
  /** The time at which the bucket had `tokens`. */
  let countedMs = startMs;
  const tokensAt = (nowMs: number) => Math.min(burst, tokens + (Math.max(0, nowMs - countedMs) / 1_000) * perSecond);
  const costOf = ({ isBulk }: PolicyRequest) => (isBulk ? Math.max(1, burst) : 1);
  return {
    ask(request, nowMs) {
      const missing = costOf(request) - tokensAt(nowMs);
      if (missing <= EPSILON) return PASS;
      // A bucket without a token at its best lets nothing through.
      const waitMs = perSecond > 0 && costOf(request) <= burst ? (missing / perSecond) * 1_000 : Number.POSITIVE_INFINITY;
      return { kind: "limited", waitMs };
    },
    take(request, nowMs) {
      tokens = Math.max(0, tokensAt(nowMs) - costOf(request));
      countedMs = Math.max(countedMs, nowMs);
    },
  };
}

export function createBucketLimiter(spec: BucketSpec, startMs: number): Limiter {
  const bucket = createTokenBucket(spec, startMs);
  return {
    ask: bucket.ask,
    charge(request, nowMs) {
      bucket.take(request, nowMs);
      return undefined;
    },
    state: () => "Closed",
  };
}

// A token bucket. Invariant: in any time t at most burst + perSecond * t requests pass; a refused request
// takes no token, so refused requests do not extend the wait.
import type { BucketSpec } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";
import { type Decision, PASS } from "./limiter.ts";

/** Rounding errors of this size must not make a full bucket refuse a request. */
const EPSILON = 1e-9;

/** @param first the tokens at the start; default: the bucket is full */
export function createTokenBucket({ perSecond, burst }: BucketSpec, startMs: number, first = burst) {
  let tokens = Math.min(burst, first);
  let countedMs = startMs;
  const tokensAt = (nowMs: number) => Math.min(burst, tokens + (Math.max(0, nowMs - countedMs) / 1_000) * perSecond);
  const costOf = ({ isBulk }: PolicyRequest) => (isBulk ? Math.max(1, burst) : 1);
  return {
    tokensAt,
    ask(request: PolicyRequest, nowMs: number): Decision {
      const missing = costOf(request) - tokensAt(nowMs);
      if (missing <= EPSILON) return PASS;
      // A bucket that never has enough tokens lets nothing through.
      const waitMs = perSecond > 0 && costOf(request) <= burst ? (missing / perSecond) * 1_000 : Number.POSITIVE_INFINITY;
      return { kind: "limited", waitMs };
    },
    charge(request: PolicyRequest, nowMs: number): undefined {
      tokens = Math.max(0, tokensAt(nowMs) - costOf(request));
      countedMs = Math.max(countedMs, nowMs);
    },
  };
}

// The limiter of a rule. The two without a file of their own are here: one that refuses every request, for
// forbidden requests and for a breaker that a person holds open, and a bound of concurrent requests.
import type { LimiterSpec } from "../policy.ts";
import { createBackoffLimiter } from "./backoff.ts";
import { type BreakerOptions, createBreaker } from "./breaker.ts";
import { type Limiter, PASS } from "./limiter.ts";
import { createBucketLimiter } from "./token-bucket.ts";

/** Only a breaker uses more than `spec` and `startMs`. */
export type LimiterOptions = Omit<BreakerOptions, "spec"> & { readonly spec: LimiterSpec };

export function createLimiter({ spec, ...options }: LimiterOptions): Limiter {
  switch (spec.kind) {
    case "deny":
      return DENY;
    case "bucket":
      return createBucketLimiter(spec, options.startMs);
    case "in-flight":
      return createInFlightLimiter(spec.max);
    case "backoff":
      return createBackoffLimiter(spec);
    case "breaker":
      return createBreaker({ spec, ...options });
    default:
      return spec satisfies never;
  }
}

const DENY: Limiter = {
  ask: () => ({ kind: "open", waitMs: Number.POSITIVE_INFINITY }),
  charge: () => undefined,
  state: () => "Opened",
};

/** Nobody knows when a slot becomes free. */
const SLOT_WAIT_MS = 1_000;

/**
 * Each slot is given back exactly once. A long-running request (a watch, a followed log) gives its slot back
 * when its answer begins, since the engine's caller releases it then.
 */
function createInFlightLimiter(max: number): Limiter {
  let used = 0;
  return {
    ask: () => (used < max ? PASS : { kind: "limited", waitMs: SLOT_WAIT_MS }),
    charge() {
      used++;
      return {
        release() {
          used--;
        },
      };
    },
    state: () => "Closed",
  };
}

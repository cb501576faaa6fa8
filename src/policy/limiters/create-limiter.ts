// The limiters of all kinds. The breaker has a file of its own.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { LimiterSpec } from "../policy.ts";
import { type BreakerOptions, createBreaker } from "./breaker.ts";
import { createDeleteBudget } from "./delete-budget.ts";
import { hasFailed, type Limiter, PASS } from "./limiter.ts";
import { createObjectBuckets } from "./object-buckets.ts";
import { createSharedBucket } from "./shared-bucket.ts";
import { type Bucket, createTokenBucket, editedBy } from "./token-bucket.ts";

type LimiterOptions = Omit<BreakerOptions, "spec"> & {
  readonly spec: LimiterSpec;
  /** Called when a bucket that pods divide begins to want a larger share. */
  readonly wanted: () => void;
};

export function createLimiter({ spec, ...options }: LimiterOptions): Limiter {
  switch (spec.kind) {
    case "deny":
      return DENY;
    case "exempt":
      return EXEMPT;
    case "bucket":
      return createBucket(spec, options);
    case "deletes":
      return limiterOf(createDeleteBudget(spec), (next) => (next.kind === "deletes" ? next : undefined));
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

function createBucket(
  spec: Extract<LimiterSpec, { kind: "bucket" }>,
  { startMs, wanted }: Omit<LimiterOptions, "spec">,
): Limiter {
  switch (spec.per) {
    case "Object":
      return createObjectBuckets(spec, startMs);
    case "Policy":
      return createSharedBucket(spec, startMs, wanted);
    case undefined:
      return limiterOf(createTokenBucket(spec, startMs), (next) => {
        return next.kind === "bucket" && next.per === undefined ? next : undefined;
      });
    default:
      return spec.per satisfies never;
  }
}

/** For forbidden requests, and for a breaker that a person holds open. */
const DENY: Limiter = {
  ask: () => ({ kind: "open", waitMs: Number.POSITIVE_INFINITY }),
  charge: () => undefined,
  state: () => "Opened",
  edit: ({ kind }) => kind === "deny",
  figures: () => ({}),
};

/** Its effect on other rules is withoutExempted's (exemptions.ts). */
const EXEMPT: Limiter = {
  ask: () => PASS,
  charge: () => undefined,
  edit: ({ kind }) => kind === "exempt",
  figures: () => ({}),
};

/** Refuses what is beyond the bucket or the budget, and never opens. */
function limiterOf<Spec>(bucket: Bucket<Spec>, specOf: (next: LimiterSpec) => Spec | undefined): Limiter {
  return { ...editedBy(bucket, specOf), figures: (nowMs) => ({ tokens: bucket.tokensAt(nowMs) }) };
}

/** Nobody knows when a slot becomes free. */
const SLOT_WAIT_MS = 1_000;

/** A long-running request (a watch, a followed log) is released when its answer begins. */
function createInFlightLimiter(firstMax: number): Limiter {
  let max = firstMax;
  let used = 0;
  const ticket = {
    release() {
      used--;
    },
  };
  return {
    ask: () => (used < max ? PASS : { kind: "limited", waitMs: SLOT_WAIT_MS }),
    charge() {
      used++;
      return ticket;
    },
    edit(next) {
      if (next.kind !== "in-flight") return false;
      ({ max } = next);
      return true;
    },
    figures: () => ({ inFlight: used }),
  };
}

const MAX_KEYS = 4_096;
/** Any base, doubled so many times, is above every bound. */
const MAX_DOUBLINGS = 40;

/** Beyond MAX_KEYS objects that fail, the object whose last failure is oldest is forgotten. */
function createBackoffLimiter(first: Extract<LimiterSpec, { kind: "backoff" }>): Limiter {
  let { baseMs, maxMs, failures: threshold } = first;
  const failing = new BoundedMap<string, { readonly failures: number; readonly untilMs: number }>(MAX_KEYS);
  const waitAfter = (failures: number) => Math.min(maxMs, baseMs * 2 ** Math.min(MAX_DOUBLINGS, failures - threshold));
  return {
    ask({ key }, nowMs) {
      const waitMs = (failing.get(key)?.untilMs ?? 0) - nowMs;
      return waitMs > 0 ? { kind: "limited", waitMs } : PASS;
    },
    charge: ({ key }) => ({
      settle(outcome, nowMs) {
        const isFailure = hasFailed(outcome);
        if (isFailure === undefined) return;
        if (!isFailure) {
          failing.delete(key);
          return;
        }
        const failures = (failing.get(key)?.failures ?? 0) + 1;
        failing.set(key, { failures, untilMs: failures < threshold ? 0 : nowMs + waitAfter(failures) });
      },
    }),
    edit(next) {
      if (next.kind !== "backoff") return false;
      ({ baseMs, maxMs, failures: threshold } = next);
      return true;
    },
    figures: () => ({ failing: failing.size }),
  };
}

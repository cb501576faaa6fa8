// A token bucket. Invariant: in any time t at most burst + perSecond * t requests pass; a refused request
// takes no token, so refused requests do not extend the wait.
import type { BucketSpec } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";
import { type Decision, PASS } from "./limiter.ts";

/** Rounding errors of this size must not make a full bucket refuse a request. */
const EPSILON = 1e-9;

/** A token bucket, or what counts like one. */
export interface Bucket<Spec> extends Omit<ReturnType<typeof createTokenBucket>, "edit"> {
  edit(next: Spec, nowMs: number): void;
}

/** @param tokensAtStart default: the bucket is full */
export function createTokenBucket(first: BucketSpec, startMs: number, tokensAtStart = first.burst) {
  let { perSecond, burst } = first;
  // An object, since V8 allocates a number anew with each change of a variable that closures share.
  const counted = { tokens: Math.min(burst, tokensAtStart), ms: startMs };
  const tokensAt = (nowMs: number) => Math.min(burst, counted.tokens + (Math.max(0, nowMs - counted.ms) / 1_000) * perSecond);
  const costOf = ({ isBulk }: PolicyRequest) => (isBulk ? Math.max(1, burst) : 1);
  const setTokens = (count: number, nowMs: number) => {
    counted.tokens = count;
    if (nowMs > counted.ms) counted.ms = nowMs;
  };
  return {
    tokensAt,
    ask(request: PolicyRequest, nowMs: number): Decision {
      const cost = costOf(request);
      if (cost <= counted.tokens) return PASS; // without those that it has gained since
      const missing = cost - tokensAt(nowMs);
      if (missing <= EPSILON) return PASS;
      // A bucket that never has enough tokens lets nothing through.
      const waitMs = perSecond > 0 && cost <= burst ? (missing / perSecond) * 1_000 : Number.POSITIVE_INFINITY;
      return { kind: "limited", waitMs };
    },
    charge(request: PolicyRequest, nowMs: number): undefined {
      setTokens(Math.max(0, tokensAt(nowMs) - costOf(request)), nowMs);
    },
    /** The tokens stay, as far as there is room. */
    edit(next: BucketSpec, nowMs: number): void {
      setTokens(Math.min(tokensAt(nowMs), next.burst), nowMs);
      ({ perSecond, burst } = next);
    },
    fill(nowMs: number): void {
      setTokens(burst, nowMs);
    },
    /** Why it refuses the request, for people. */
    figure(request: PolicyRequest, nowMs: number): string {
      const { isBulk } = request;
      if (isBulk) return `a deletecollection takes all tokens: ${rounded(tokensAt(nowMs))} of ${burst} were left`;
      if (perSecond === 0) return `no token left: burst ${burst}, and none comes back`;
      const rate = perSecond >= 1 ? `${rounded(perSecond)} each second` : `1 each ${rounded(1 / perSecond)} s`;
      return `no token left: burst ${burst}, ${rate}`;
    },
  };
}

/** The bucket of a rule, which edits by the rule's new form. False: that form has no bucket of this kind. */
export function editedBy<Form, Spec>(bucket: Bucket<Spec>, specOf: (next: Form) => Spec | undefined) {
  const edit = (next: Form, nowMs: number): boolean => {
    const spec = specOf(next);
    if (spec !== undefined) bucket.edit(spec, nowMs);
    return spec !== undefined;
  };
  return { ...bucket, edit };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

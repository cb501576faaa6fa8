// A pod's share of a bucket that all pods of a policy divide (`bucket.per: Policy`). Invariant: a larger share
// brings no tokens, and a smaller one takes those that it has no room for, so that all shares together let no
// more through than the whole bucket would.
import { type BucketSpec, WHOLE_BUDGET } from "../policy.ts";
import type { Limiter } from "./limiter.ts";
import { createTokenBucket } from "./token-bucket.ts";

/** Nobody knows when the manager deals a share. */
const NO_SHARE_WAIT_MS = 1_000;
/** So shares move at most as often, however the load changes. */
export const WANT_MS = 30_000;

/** @param wanted called when the pod begins to want more */
export function createSharedBucket(first: BucketSpec, startMs: number, wanted: () => void) {
  let spec = first;
  let share = 0;
  let wantedMs = Number.NEGATIVE_INFINITY;
  let bucket = createTokenBucket({ perSecond: 0, burst: 0 }, startMs);
  let burst = 0;
  let isFirst = true;
  /** The pod has used more than half of its share lately, or was refused. */
  const wantsMore = (nowMs: number) => nowMs - wantedMs < WANT_MS;
  const want = (nowMs: number) => {
    const isNew = !wantsMore(nowMs);
    wantedMs = nowMs;
    if (isNew) wanted();
  };
  /** @param tokens as far as there is room for them */
  const deal = (tokens: number, nowMs: number) => {
    // A share of less than one token would let nothing through.
    burst = share === 0 ? 0 : Math.max(1, Math.floor((spec.burst * share) / WHOLE_BUDGET));
    bucket = createTokenBucket({ perSecond: (spec.perSecond * share) / WHOLE_BUDGET, burst }, nowMs, tokens);
  };
  return {
    wantsMore,
    /** The first share of a process is full. Without a share every request is refused. */
    setShare(millionths: number, nowMs: number) {
      if (millionths === share) return;
      share = millionths;
      deal(isFirst ? Number.POSITIVE_INFINITY : bucket.tokensAt(nowMs), nowMs);
      isFirst = false;
    },
    edit(next, nowMs) {
      if (next.kind !== "bucket" || next.per !== "Policy") return false;
      spec = next;
      deal(bucket.tokensAt(nowMs), nowMs);
      return true;
    },
    figures: (nowMs) => ({ tokens: bucket.tokensAt(nowMs), shareInMillionths: share }),
    ask(request, nowMs) {
      return burst === 0 ? { kind: "limited", waitMs: NO_SHARE_WAIT_MS } : bucket.ask(request, nowMs);
    },
    refuse(_request, nowMs) {
      // Without a share every pod is refused: that says nothing about who needs more.
      if (burst > 0) want(nowMs);
    },
    charge(request, nowMs) {
      bucket.charge(request, nowMs);
      if (bucket.tokensAt(nowMs) < burst / 2) want(nowMs);
      return undefined;
    },
  } satisfies Limiter;
}

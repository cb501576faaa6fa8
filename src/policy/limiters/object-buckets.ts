// A token bucket for each object (`bucket.per: Object`). Invariant: the requests for any one object keep
// within its burst and rate, however many objects there are; the memory is bounded.
import type { BucketSpec } from "../policy.ts";
import { bounded, type PolicyRequest } from "../policy-request.ts";
import type { Limiter } from "./limiter.ts";
import { type Bucket, createTokenBucket } from "./token-bucket.ts";

/** Objects beyond this number share one bucket, until others have a full bucket again. */
export const MAX_OBJECTS = 4_096;
/** A look at all buckets costs a tenth of a millisecond. */
const SWEEP_EVERY_MS = 1_000;

export function createObjectBuckets(first: BucketSpec, startMs: number): Limiter {
  let spec = first;
  const buckets = new Map<string, Bucket<BucketSpec>>();
  /** For objects that find no room. */
  const rest = createTokenBucket(spec, startMs);
  let sweptMs = Number.NEGATIVE_INFINITY;
  /** A full bucket is as good as none. */
  const sweep = (nowMs: number) => {
    sweptMs = nowMs;
    for (const [key, bucket] of buckets) if (bucket.tokensAt(nowMs) >= spec.burst) buckets.delete(key);
  };
  const find = (request: PolicyRequest): Bucket<BucketSpec> | undefined => buckets.get(objectKeyOf(request));
  return {
    ask: (request, nowMs) => (find(request) ?? rest).ask(request, nowMs),
    charge(request, nowMs) {
      const known = find(request);
      if (known !== undefined) return known.charge(request, nowMs);
      if (buckets.size >= MAX_OBJECTS && nowMs - sweptMs >= SWEEP_EVERY_MS) sweep(nowMs);
      if (buckets.size >= MAX_OBJECTS) return rest.charge(request, nowMs);
      // The object may have used tokens of the shared bucket.
      const bucket = createTokenBucket(spec, nowMs, rest.tokensAt(nowMs));
      buckets.set(objectKeyOf(request), bucket);
      return bucket.charge(request, nowMs);
    },
    edit(next, nowMs) {
      if (next.kind !== "bucket" || next.per !== "Object") return false;
      spec = next;
      for (const bucket of [rest, ...buckets.values()]) bucket.edit(spec, nowMs);
      return true;
    },
    figures: (nowMs) => ({ objects: buckets.size, tokens: rest.tokensAt(nowMs) }),
  };
}

/** All verbs and subresources of an object have one key. A request that names no object counts for its collection. */
function objectKeyOf({ actions, key }: PolicyRequest): string {
  const [action] = actions;
  if (action === undefined) return key;
  const { group, resource, namespace, name } = action;
  return bounded(`${group}/${resource.split("/", 1)[0]} ${namespace}/${name}`);
}

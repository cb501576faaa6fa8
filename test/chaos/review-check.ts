// Prepares the answered reviews of a chaos run for the ownership check: each is like a write at the moment of
// its answer. Pure. Called by run-chaos.ts.
//
// A review that was on its way to the old owner when the place was granted is answered by the old owner after
// the new one's first answer. So such answers are left out, for as long as the API server waits for one.

import type { PodWrite } from "../support/mesh/pod-writes.ts";
import type { AnsweredReview } from "../support/review-server.ts";

/** The reviews to check, as writes. @param waitsMs how long the API server waits for an answer */
export function checkedReviews(
  reviews: readonly AnsweredReview[],
  subsetOf: (pod: string) => string | undefined,
  waitsMs: number,
): PodWrite[] {
  const last = new Map<string, { subset: string | undefined; before: string | undefined; sinceMs: number }>();
  return [...reviews]
    .sort((a, b) => a.answeredMs - b.answeredMs)
    .flatMap(({ pod, uid, namespace, name, answeredMs }) => {
      const subset = subsetOf(pod);
      const now = last.get(namespace);
      if (now !== undefined && subset === now.before && answeredMs - now.sinceMs <= waitsMs) return [];
      if (now?.subset !== subset) last.set(namespace, { subset, before: now?.subset, sinceMs: answeredMs });
      const what = { verb: "review", resource: "foos", namespace, name: `${name} (${uid})`, code: 200 };
      return [{ pod, ...what, receivedMs: answeredMs, answeredMs }];
    });
}

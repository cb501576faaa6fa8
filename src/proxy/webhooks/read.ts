// Reads the review of a call. Invariant: all bodies that are held at one time are bounded; whatever is no review goes on unread, or as it was read.
import { MAX_REVIEW_BYTES, readReview } from "../../kube/admission-review.ts";
import { readBody } from "../http/byte-stream.ts";
import { type ReviewCall, ReviewError, type ReviewLayer, unavailable } from "./review-call.ts";

/** Of the bodies of all calls at one time. */
export const MAX_HELD_BYTES = 48 * 1024 * 1024;

export function read(maxHeldBytes = MAX_HELD_BYTES): ReviewLayer {
  let held = 0;
  return (next) => async (call) => {
    const bytes = bytesOf(call);
    // Larger ones are no reviews: conversions of long lists are that large.
    if (bytes === 0 || bytes > MAX_REVIEW_BYTES) return pass(next, call);
    if (held + bytes > maxHeldBytes) throw unavailable("BUSY", "ctrlmesh: this pod holds too many reviews at this moment");
    held += bytes;
    try {
      const body = await readBody(call.body, MAX_REVIEW_BYTES);
      const subject = readReview(body);
      if (subject === undefined) return await pass(next, { ...call, body });
      call.record.subject = subject;
      return await next({ ...call, body });
    } finally {
      held -= bytes;
    }
  };
}

function pass(next: (call: ReviewCall) => ReturnType<ReturnType<ReviewLayer>>, call: ReviewCall) {
  // A peer forwards reviews only.
  if (call.record.forwardedAs !== undefined)
    throw new ReviewError(400, "BAD_REQUEST", "ctrlmesh: a peer has forwarded something that is no review", "refused");
  return next(call);
}

/** The length of the body, or the most that it may have. */
function bytesOf({ method, headers, body }: ReviewCall): number {
  if (method !== "POST" || body === null) return 0;
  const length = headers["content-length"];
  return length === undefined ? MAX_REVIEW_BYTES : Number(length);
}

// Reads the review of a call. Invariant: all bodies that are held at one time are bounded, and a byte counts once it has come, so that a client that sends
// nothing takes nothing from others. Whatever is no review goes on unread, or as it was read.
import { MAX_REVIEW_BYTES, readReview } from "../../kube/admission-review.ts";
import { asSource, readBody } from "../http/byte-stream.ts";
import { tap } from "../http/tap.ts";
import { type ReviewCall, ReviewError, type ReviewLayer, unavailable } from "./review-call.ts";

/** Of the bodies of all calls at one time. */
export const MAX_HELD_BYTES = 48 * 1024 * 1024;

export function read(maxHeldBytes = MAX_HELD_BYTES): ReviewLayer {
  let held = 0;
  return (next) => async (call) => {
    if (call.body === null || !mayBeReview(call)) return pass(next, call);
    let own = 0;
    const take = (bytes: number) => {
      if (held + bytes > maxHeldBytes) throw unavailable("BUSY", "ctrlmesh: this pod holds too many reviews at this moment");
      held += bytes;
      own += bytes;
    };
    const counted = tap(asSource(call.body), (write) => ({
      chunk(chunk) {
        take(chunk.length);
        write(chunk);
      },
    }));
    try {
      const body = await readBody(counted, MAX_REVIEW_BYTES);
      const subject = readReview(body);
      if (subject === undefined) return await pass(next, { ...call, body });
      call.record.subject = subject;
      return await next({ ...call, body });
    } finally {
      held -= own;
    }
  };
}

function pass(next: (call: ReviewCall) => ReturnType<ReturnType<ReviewLayer>>, call: ReviewCall) {
  // A peer forwards reviews only.
  if (call.record.forwardedAs !== undefined)
    throw new ReviewError(400, "BAD_REQUEST", "ctrlmesh: a peer has forwarded something that is no review", "refused");
  return next(call);
}

// Larger bodies are no reviews: conversions of long lists are that large. API servers say the length.
function mayBeReview({ method, headers }: ReviewCall): boolean {
  const length = headers["content-length"];
  return method === "POST" && (length === undefined || Number(length) <= MAX_REVIEW_BYTES);
}

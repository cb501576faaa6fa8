// Reads the review of a call while it arrives, so that no step takes the event loop long. Invariants: the
// memory of all bodies that are held is bounded, and no address has more than what is left for all others;
// whatever is not a review is passed on with all its bytes.
import { MeshError } from "../../base/errors.ts";
import { createFairBudget, type FairBudget } from "../../base/fair-budget.ts";
import { createGrowingBytes } from "../../base/growing-bytes.ts";
import { MAX_REVIEW_BYTES, type ReviewSubject } from "../../kube/admission-review.ts";
import { createReviewReader } from "../../kube/codec/review-reader.ts";
import { asSource, type ByteSource, readBody } from "../http/byte-stream.ts";
import type { Handler, Reply } from "../http/handler.ts";
import { tap } from "../http/tap.ts";
import { type ReviewCall, ReviewError, type ReviewLayer, unavailable } from "./review-call.ts";

/**
 * The bound of all held bodies and of what is kept of them. One address may hold one of the largest reviews.
 * Another has room for 4.5 MiB then: etcd takes objects of 1.5 MiB, and an update has two. Buffers that are
 * not collected yet take about twice as much again.
 */
export const MAX_HELD_BYTES = 16 * 1024 * 1024;

export function read(): ReviewLayer {
  const budget = createFairBudget(MAX_HELD_BYTES);
  return (next) => async (call) => {
    if (call.body === null || !mayBeReview(call)) return pass(next, call);
    const share = takeFrom(budget, call.record.address);
    try {
      const { body, subject } = await readReviewBody(call, asSource(call.body), share.take);
      if (subject === undefined) return await pass(next, { ...call, body });
      call.record.subject = subject;
      return await next({ ...call, body });
    } finally {
      share.release();
    }
  };
}

function takeFrom(budget: FairBudget, address: string) {
  let takenBytes = 0;
  return {
    /** @throws ReviewError if there is no room */
    take(bytes: number): void {
      if (!budget.take(address, bytes))
        throw unavailable("BUSY", "ctrlmesh: this pod holds too many reviews at this moment", RETRY_AFTER_SECONDS);
      takenBytes += bytes;
    },
    release: () => budget.give(address, takenBytes),
  };
}

/** Within the time that an API server waits for a webhook. */
const RETRY_AFTER_SECONDS = 1;

async function readReviewBody(
  { headers }: ReviewCall,
  source: ByteSource,
  take: (bytes: number) => void,
): Promise<{ readonly body: Buffer; readonly subject: ReviewSubject | undefined }> {
  const growing = createGrowingBytes(Number(headers["content-length"] ?? MAX_REVIEW_BYTES));
  const reader = createReviewReader();
  let keptBytes = 0;
  const eaten = tap(source, () => ({
    chunk(chunk) {
      if (growing.bytes.length + chunk.length > MAX_REVIEW_BYTES)
        throw new MeshError("BODY_TOO_LARGE", `reading a review: more than ${MAX_REVIEW_BYTES} bytes`);
      take(growing.growthBy(chunk.length));
      growing.push(chunk);
      reader.scan(growing.bytes);
      take(reader.heldBytes - keptBytes);
      keptBytes = reader.heldBytes;
    },
  }));
  await readBody(eaten, 0);
  return { body: growing.bytes, subject: reader.subject };
}

function pass(next: Handler<ReviewCall, Reply>, call: ReviewCall): Promise<Reply> {
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

// The subject of a whole AdmissionReview, read in one step.
import type { ReviewSubject } from "../../src/kube/admission-review.ts";
import { createReviewReader } from "../../src/kube/codec/review-reader.ts";

export function readReview(body: Uint8Array): ReviewSubject | undefined {
  const reader = createReviewReader();
  reader.scan(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return reader.subject;
}

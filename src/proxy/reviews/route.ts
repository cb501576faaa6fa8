// Has a review answered by the subset that owns the object; the pure decision is route/route-review.ts. What
// is no review goes on to the operator.
import { type AnswerDeps, answerReview } from "./answer-review.ts";
import type { ReviewLayer } from "./review-call.ts";

export function route(deps: AnswerDeps): ReviewLayer {
  return (next) => (call) => {
    const { subject } = call.record;
    return subject === undefined ? next(call) : answerReview(call, subject, deps);
  };
}

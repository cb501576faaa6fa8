// Refuses the reviews that a policy names (circuitBreaking.webhook of TrafficPolicies). Invariant: only the pod that got the call from the API server asks, so
// that a forwarded review is judged once.
import { ruleName } from "../../policy/policy.ts";
import { reviewRequestOf } from "../../policy/policy-request.ts";
import type { Policies } from "../policies/policies.ts";
import { refusalText } from "../policies/refusal-text.ts";
import { ReviewError, type ReviewLayer } from "./review-call.ts";

export function limit(policies: Pick<Policies, "hasLimits" | "admit">): ReviewLayer {
  return (next) => async (call) => {
    const { subject, forwardedAs } = call.record;
    if (subject === undefined || forwardedAs !== undefined || !policies.hasLimits) return next(call);
    const admission = policies.admit(reviewRequestOf(subject));
    if (admission.kind === "refused") {
      call.record.rule = ruleName(admission.rule.origin);
      throw new ReviewError(503, "BREAKER_OPEN", `ctrlmesh: ${refusalText(admission)}`, "limited");
    }
    try {
      return await next(call);
    } finally {
      admission.passage.release();
    }
  };
}

// Decides about one review in the main thread, where routes and policies are. Invariants: a policy judges a
// review once, in the pod that got the call from the API server; an answer costs some microseconds, since the
// operator's own requests wait meanwhile. Called by create-webhooks.ts for the thread of the listener.
import type { ReviewSubject } from "../../kube/admission-review.ts";
import { ruleName } from "../../policy/policy.ts";
import { reviewRequestOf } from "../../policy/policy-request.ts";
import { type Recipient, type ReviewRoute, routeReview } from "../../route/route-review.ts";
import type { Policies } from "../policies/policies.ts";
import { refusalText } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";
import type { PlacesBefore } from "./places-before.ts";

export interface ReviewQuestion {
  readonly subject: ReviewSubject;
  /** What this pod is to answer as, if a peer has forwarded the review. */
  readonly forwardedAs: Recipient["as"] | undefined;
  /** It is the first one about this review. */
  readonly isFirst: boolean;
}

export type ReviewDecision =
  /** @param subset this pod's own */
  | { readonly kind: "routed"; readonly subset: string; readonly route: ReviewRoute }
  /** A policy refuses it (circuitBreaking.webhook of TrafficPolicies). */
  | { readonly kind: "limited"; readonly rule: string; readonly message: string }
  | { readonly kind: "no-routes" }
  /** The log has the details. */
  | { readonly kind: "failed" };

export interface DecideDeps {
  readonly session: Pick<Session, "current">;
  readonly before: PlacesBefore;
  readonly policies: Pick<Policies, "hasLimits" | "limit">;
}

export function decideReview(question: ReviewQuestion, { session, before, policies }: DecideDeps): ReviewDecision {
  const { subject, forwardedAs, isFirst } = question;
  if (isFirst && forwardedAs === undefined && policies.hasLimits) {
    const decision = policies.limit(reviewRequestOf(subject));
    if (decision.kind === "refused")
      return { kind: "limited", rule: ruleName(decision.rule.origin), message: `ctrlmesh: ${refusalText(decision)}` };
    // Immediately, since a rule about reviews counts nothing (docs/decisions/0028).
    decision.permit.release();
  }
  const { current } = session;
  if (current === undefined) return { kind: "no-routes" };
  const { subset } = current.snapshot;
  const { group, resource } = subject.resource;
  const route = routeReview(subject, current.view(group, resource), {
    subset,
    forwardedAs,
    ownerBefore: (place, labels) => before.ownerBefore(subject.resource, place, labels),
  });
  return { kind: "routed", subset, route };
}

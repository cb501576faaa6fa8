// Decides about one review in the main thread, in microseconds, since the operator's own requests wait
// meanwhile. Invariant: a policy judges a review once, in the pod that the API server called.
import type { ReviewSubject } from "../../kube/admission-review.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import type { Owner } from "../../mesh/ownership/owners.ts";
import { type Recipient, type ReviewRoute, routeReview } from "../../mesh/ownership/route-review.ts";
import { ruleName } from "../../policy/policy.ts";
import { reviewRequestOf } from "../../policy/policy-request.ts";
import type { Policies } from "../policies/policies.ts";
import { refusalText } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";

export interface ReviewQuestion {
  readonly subject: ReviewSubject;
  /** What this pod is to answer as, if a peer has forwarded the review. */
  readonly forwardedAs: Recipient["as"] | undefined;
  readonly isFirst: boolean;
}

export type ReviewDecision =
  /** `subset` is this pod's own. */
  | { readonly kind: "routed"; readonly subset: string; readonly route: ReviewRoute }
  /** A policy refuses it (circuitBreaking.webhook of TrafficPolicies). */
  | { readonly kind: "limited"; readonly rule: string; readonly message: string }
  | { readonly kind: "no-routes" }
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

export type PlacesBefore = ReturnType<typeof createPlacesBefore>;

/** The owners of fenced places from before their fence; an entry lasts exactly as long as the fence. */
export function createPlacesBefore() {
  let lastUnfenced: ReadonlyMap<string, Enforced> = new Map();
  return {
    follow(now: Enforced, before: Enforced | undefined): void {
      const next = new Map<string, Enforced>();
      for (const place of now.snapshot.table.fenced) {
        const last = lastUnfenced.get(place) ?? (before?.snapshot.table.fenced.has(place) ? undefined : before);
        if (last !== undefined) next.set(place, last);
      }
      lastUnfenced = next;
    },
    /** The owner by the last snapshot without the fence; undefined without a fence, or if unknown. */
    ownerBefore: ({ group, resource }: GroupResource, place: string, labels?: Labels): Owner | undefined =>
      lastUnfenced.get(place)?.view(group, resource).ownerOf(place, labels),
  };
}

// Decides which subset's pods answer a review of the operator's webhooks. Pure. Invariants: at any time one
// subset answers for an object, unless every subset owns it; a forwarded review is never forwarded again.
import type { ReviewSubject } from "../../kube/admission-review.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { Owner } from "./owners.ts";
import { governingPlace, isNamespaces, type ResourceView } from "./snapshot.ts";
import { ownerText } from "./words.ts";

export type ReviewRoute =
  /** The operator beside this proxy answers. */
  | { readonly kind: "local" }
  /** A pod of this subset answers. */
  | { readonly kind: "peer"; readonly to: Recipient }
  /** Tells the peer that sent the review here which subset answers. */
  | { readonly kind: "redirect"; readonly to: Recipient }
  /** The object is outside of a limit, so no operator of the app sees it, and it passes unchanged. */
  | { readonly kind: "allowed" }
  /** Wait until the owner of the place is known, then decide again. */
  | { readonly kind: "hold"; readonly place: string }
  /** Nobody may answer: 503, so that the webhook's failurePolicy decides. */
  | { readonly kind: "unavailable"; readonly message: string };

/** The subset that answers, and why. */
export interface Recipient {
  readonly subset: string;
  /**
   * "owner": the subset owns the object. "holder": it owned the place until now, and answers until the next
   * owner gets it. Only the next owner's table has the fence, so only its pods send or redirect reviews to
   * the holder.
   */
  readonly as: "owner" | "holder";
}

export interface Asking {
  /** The subset of this proxy's pod. */
  readonly subset: string;
  /** The role in which this pod should answer; undefined if no peer has forwarded the review. */
  readonly forwardedAs: Recipient["as"] | undefined;
  /** The owner before the place was fenced for this subset; undefined if this proxy does not know. */
  ownerBefore(place: string, labels: Labels | undefined): Owner | undefined;
}

const LOCAL: ReviewRoute = { kind: "local" };

export function routeReview(subject: ReviewSubject, view: ResourceView, asking: Asking): ReviewRoute {
  // The next owner has sent it here, and knows better than this table.
  if (view.ownsAll || asking.forwardedAs === "holder") return LOCAL;
  const { group, resource } = subject.resource;
  const place = governingPlace(group, resource, subject);
  const labels = labelsOf(subject);
  const planned = view.ownerOf(place, labels);
  switch (planned.kind) {
    case "everyone":
    case "labels": // they are not known, so any pod may answer
      return LOCAL;
    case "subset":
      return toSubset({ subset: planned.subset, as: "owner" }, asking);
    case "nobody":
      // A gap is a mistake in the configuration; a limit is intended.
      return planned.isGap ? { kind: "unavailable", message: `ctrlmesh: ${ownerText(planned, place)}` } : { kind: "allowed" };
    case "moving": {
      const before = asking.ownerBefore(place, labels);
      return before?.kind === "subset" ? toSubset({ subset: before.subset, as: "holder" }, asking) : { kind: "hold", place };
    }
    case "unknown":
      // The manager knows a namespace only after its create.
      return isNamespaces(subject.resource) && subject.operation === "CREATE" ? LOCAL : { kind: "hold", place };
    default:
      return planned satisfies never;
  }
}

function toSubset(to: Recipient, { subset, forwardedAs }: Asking): ReviewRoute {
  if (to.subset === subset) return LOCAL;
  return { kind: forwardedAs === undefined ? "peer" : "redirect", to };
}

// The labels that the object will have, since its next owner has to judge it. The objects of other
// subresources do not have its labels.
function labelsOf({ operation, subresource, labels, oldLabels }: ReviewSubject): Labels | undefined {
  if (subresource !== "" && subresource !== "status") return undefined;
  return operation === "DELETE" ? oldLabels : labels;
}

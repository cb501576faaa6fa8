// Decides which subset's pods answer a review of the operator's webhooks. Pure. Invariants: one subset
// answers for an object at any time, except for what every subset owns; a review that a peer has forwarded is
// never forwarded again.
import type { ReviewSubject } from "../kube/admission-review.ts";
import type { Labels } from "../kube/label-selector.ts";
import { governingPlace, isNamespaces, type ResourceView } from "./snapshot.ts";
import type { Owner } from "./table.ts";
import { ownerText } from "./words.ts";

export type ReviewRoute =
  /** The operator beside this proxy answers. */
  | { readonly kind: "local" }
  /** A pod of this subset answers. */
  | { readonly kind: "peer"; readonly to: Recipient }
  /** To the peer that sent the review here: this subset answers. */
  | { readonly kind: "redirect"; readonly to: Recipient }
  /** The object is outside of a global limit. No operator of the app sees it, so it passes unchanged. */
  | { readonly kind: "allowed" }
  /** Wait until the owner of the place is known, then decide again. */
  | { readonly kind: "hold"; readonly place: string }
  /** Nobody may answer: 503, so that the webhook's failurePolicy decides. */
  | { readonly kind: "unavailable"; readonly message: string };

/** The subset that answers, and why. */
export interface Recipient {
  readonly subset: string;
  /**
   * The subset owns the object, or it held the place until now and answers until the place is granted to its
   * next owner. Only the next owner's own table has the fence, so only a pod of the next owner may send a
   * review to the holder, or send somebody there.
   */
  readonly as: "owner" | "holder";
}

export interface Asking {
  /** Of this proxy's pod. */
  readonly subset: string;
  /** What this pod is to answer as, if a peer has forwarded the review. */
  readonly forwardedAs: Recipient["as"] | undefined;
  /** The owner before the place was fenced for this subset; undefined if this proxy does not know. */
  ownerBefore(place: string, labels: Labels | undefined): Owner | undefined;
}

const LOCAL: ReviewRoute = { kind: "local" };

/** Decides about one review, by the view of its resource. */
export function routeReview(subject: ReviewSubject, view: ResourceView, asking: Asking): ReviewRoute {
  // The next owner has sent it here, and knows better than this table.
  if (view.ownsAll || asking.forwardedAs === "holder") return LOCAL;
  const { group, resource } = subject.resource;
  const place = governingPlace(group, resource, subject);
  const labels = labelsOf(subject);
  const planned = view.ownerOf(place, labels);
  switch (planned.kind) {
    case "everyone":
    case "labels": // which are not known: any pod may answer
      return LOCAL;
    case "subset":
      return toSubset({ subset: planned.subset, as: "owner" }, asking);
    case "nobody":
      // Gaps are a mistake in the configuration; limits are meant.
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

// Of what the object becomes: its next writer is the one to judge it. Other subresources have objects of
// their own, without its labels.
function labelsOf({ operation, subresource, labels, oldLabels }: ReviewSubject): Labels | undefined {
  if (subresource !== "" && subresource !== "status") return undefined;
  return operation === "DELETE" ? oldLabels : labels;
}

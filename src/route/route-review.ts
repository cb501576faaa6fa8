// Decides which subset's pods answer a review of the operator's webhooks. Pure. Invariants: one subset answers for an object at any time,
// except for what every subset owns; a review that a peer has forwarded is never forwarded again. Called by the listener for webhooks.
import type { ReviewSubject } from "../kube/admission-review.ts";
import type { Labels } from "../kube/label-selector.ts";
import { governingPlace, isNamespaces, type ResourceView } from "./snapshot.ts";
import { DEFAULT_SUBSET, ownerText } from "./table.ts";

export type ReviewRoute =
  /** The operator beside this proxy answers. */
  | { readonly kind: "local" }
  /** A pod of this subset answers. */
  | { readonly kind: "peer"; readonly subset: string }
  /** The object is outside of a global limit. No operator of the app sees it, so it passes unchanged. */
  | { readonly kind: "allowed" }
  /** Wait until the owner of the place is known, then decide again. */
  | { readonly kind: "hold"; readonly place: string }
  /** Nobody may answer: 503, so that the webhook's failurePolicy decides. */
  | { readonly kind: "unavailable"; readonly message: string };

export interface Asking {
  /** Of this proxy's pod. */
  readonly subset: string;
  /** A peer has forwarded the review. */
  readonly isForwarded: boolean;
  /**
   * The subset that answers for a place until a handover grants the place; undefined if the place does not move. A fence is only in the tables
   * of those who wait for it, so the tables alone do not say.
   */
  holderOf(place: string): string | undefined;
}

const LOCAL: ReviewRoute = { kind: "local" };

/** Decides about one review, by the view of its resource. */
export function routeReview(subject: ReviewSubject, view: ResourceView, asking: Asking): ReviewRoute {
  if (view.ownsAll) return LOCAL;
  const { group, resource } = subject.resource;
  const place = governingPlace(group, resource, subject);
  const planned = view.ownerOf(place, labelsOf(subject));
  const holder = planned.kind === "everyone" || planned.kind === "labels" ? undefined : asking.holderOf(place);
  if (holder !== undefined) return toSubset(holder, asking);
  switch (planned.kind) {
    case "everyone":
      return LOCAL;
    case "subset":
      return toSubset(planned.subset, asking);
    case "labels": // which are not known
      return toSubset(DEFAULT_SUBSET, asking);
    case "nobody":
      // Gaps are a mistake in the configuration; limits are meant.
      return planned.isGap ? { kind: "unavailable", message: `ctrlmesh: ${ownerText(planned, place)}` } : { kind: "allowed" };
    case "moving":
      return { kind: "hold", place };
    case "unknown":
      // The manager knows a namespace only after its create.
      return isNamespaces(subject.resource) && subject.operation === "CREATE" ? LOCAL : { kind: "hold", place };
    default:
      return planned satisfies never;
  }
}

function toSubset(owner: string, { subset, isForwarded }: Asking): ReviewRoute {
  if (owner === subset) return LOCAL;
  if (!isForwarded) return { kind: "peer", subset: owner };
  const text = ownerText({ kind: "subset", subset: owner });
  return { kind: "unavailable", message: `ctrlmesh: a peer forwarded this review here, and ${text} answers it` };
}

// Of what the object becomes: its next writer is the one to judge it. Other subresources have objects of their own, without its labels.
function labelsOf({ operation, subresource, labels, oldLabels }: ReviewSubject): Labels | undefined {
  if (subresource !== "" && subresource !== "status") return undefined;
  return operation === "DELETE" ? oldLabels : labels;
}

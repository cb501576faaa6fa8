// AdmissionReview, the protocol between the API server and webhooks. Invariant: an answer has the apiVersion,
// the kind and the uid of its request, since the API server rejects any other answer.
import type { Labels } from "./label-selector.ts";
import type { GroupVersionResource } from "./types.ts";

/** The API server accepts 3 MiB from a client, and the review of an update contains two objects. */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;

export const REVIEW_KIND = "AdmissionReview";
export const REVIEW_VERSIONS = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] as const;
export const REVIEW_OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;

export type ReviewVersion = (typeof REVIEW_VERSIONS)[number];
export type ReviewOperation = (typeof REVIEW_OPERATIONS)[number];

/** What a review is about. Text that is absent is "". */
export interface ReviewSubject {
  readonly apiVersion: ReviewVersion;
  readonly uid: string;
  /** The resource, in the version that the webhook requested. */
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  readonly namespace: string;
  /** "" if the API server is still to generate it. */
  readonly name: string;
  readonly operation: ReviewOperation;
  /** The labels of the new object. Undefined if the review has no such object; so is `oldLabels`. */
  readonly labels: Labels | undefined;
  /** The labels of the stored object. */
  readonly oldLabels: Labels | undefined;
  readonly dryRun: boolean;
}

export function reviewAnswer(apiVersion: ReviewVersion, uid: string, response: object): object {
  return { apiVersion, kind: REVIEW_KIND, response: { uid, ...response } };
}

export function allowReview({ apiVersion, uid }: Pick<ReviewSubject, "apiVersion" | "uid">): object {
  return reviewAnswer(apiVersion, uid, { allowed: true });
}

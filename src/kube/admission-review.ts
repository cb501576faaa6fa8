// AdmissionReview, the protocol between the API server and webhooks, as a webhook of any group needs it: what a review is about, and the
// review that answers it. Pure. Invariant: an answer has the apiVersion, the kind and the uid of its request; the API server rejects any
// other. Called by the manager for its own webhooks and by the proxy for the operator's.
import { tryParseJson } from "../base/json.ts";
import type { Labels } from "./label-selector.ts";
import type { Status } from "./status.ts";
import type { GroupVersionResource } from "./types.ts";

/** The API server accepts 3 MiB from a client, and a review of an update contains two objects and their names. */
export const MAX_REVIEW_BYTES = 7 * 1024 * 1024;

const KIND = "AdmissionReview";
const VERSIONS = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] as const;
const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;

export type ReviewVersion = (typeof VERSIONS)[number];
export type ReviewOperation = (typeof OPERATIONS)[number];

/** What a review is about. Text that is absent is "". */
export interface ReviewSubject {
  readonly apiVersion: ReviewVersion;
  readonly uid: string;
  /** The resource in the version that the webhook asks for. */
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  readonly namespace: string;
  /** "" if the API server is still to generate it. */
  readonly name: string;
  readonly operation: ReviewOperation;
  /** Of the object as it will be. Undefined if the review has none. */
  readonly labels: Labels | undefined;
  /** Of the object as it is stored. Undefined if the review has none. */
  readonly oldLabels: Labels | undefined;
  readonly dryRun: boolean;
}

/** Reads what a review is about. Undefined for anything else: a ConversionReview, another version, no JSON, more than `MAX_REVIEW_BYTES`. */
export function readReview(body: Uint8Array): ReviewSubject | undefined {
  const review = body.length > MAX_REVIEW_BYTES ? undefined : objectOf(tryParseJson(body));
  const apiVersion = VERSIONS.find((version) => version === review?.apiVersion);
  const request = objectOf(review?.request);
  const resource = objectOf(request?.resource);
  const operation = OPERATIONS.find((each) => each === request?.operation);
  if (apiVersion === undefined || review?.kind !== KIND || request === undefined) return undefined;
  const uid = textOf(request.uid);
  const named = textOf(resource?.resource);
  if (uid === "" || named === "" || operation === undefined) return undefined;
  const metadata = metadataOf(request.object);
  return {
    apiVersion,
    uid,
    resource: { group: textOf(resource?.group), version: textOf(resource?.version), resource: named },
    subresource: textOf(request.subResource),
    namespace: textOf(request.namespace),
    // A create may leave the name to the object.
    name: textOf(request.name) || (operation === "CREATE" ? textOf(metadata?.name) : ""),
    operation,
    labels: labelsOf(metadata),
    oldLabels: labelsOf(metadataOf(request.oldObject)),
    dryRun: request.dryRun === true,
  };
}

/** The review that answers a request. */
export function reviewAnswer(apiVersion: ReviewVersion, uid: string, response: object): object {
  return { apiVersion, kind: KIND, response: { uid, ...response } };
}

/** The answer that lets the request pass unchanged. */
export function allowReview({ apiVersion, uid }: Pick<ReviewSubject, "apiVersion" | "uid">): object {
  return reviewAnswer(apiVersion, uid, { allowed: true });
}

/** The answer that refuses the request, with the code and the message of a Status. */
export function refuseReview({ apiVersion, uid }: Pick<ReviewSubject, "apiVersion" | "uid">, status: Status): object {
  return reviewAnswer(apiVersion, uid, { allowed: false, status });
}

type Fields = Readonly<Record<string, unknown>>;

function objectOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function metadataOf(object: unknown): Fields | undefined {
  const fields = objectOf(object);
  return fields === undefined ? undefined : (objectOf(fields.metadata) ?? {});
}

// Without a prototype, so that a label `__proto__` is only a label.
function labelsOf(metadata: Fields | undefined): Labels | undefined {
  if (metadata === undefined) return undefined;
  const labels: Record<string, string> = Object.create(null);
  for (const [key, value] of Object.entries(objectOf(metadata.labels) ?? {})) if (typeof value === "string") labels[key] = value;
  return labels;
}

// Reads the subject of an AdmissionReview while the review arrives. Invariant: whatever the review contains,
// no step takes long, and the part that is kept is small.
import { MAX_REVIEW_BYTES, REVIEW_KIND, REVIEW_OPERATIONS, REVIEW_VERSIONS, type ReviewSubject } from "../admission-review.ts";
import type { Labels } from "../label-selector.ts";
import { JsonPicker, type Picked, type Shape } from "./json/picker.ts";

export { MAX_PICKED_CHARS } from "./json/picker.ts";

const OBJECT: Shape = { metadata: { name: "text", labels: "texts" } };
const REVIEW: Shape = {
  apiVersion: "text",
  kind: "text",
  request: {
    uid: "text",
    operation: "text",
    namespace: "text",
    name: "text",
    subResource: "text",
    dryRun: "flag",
    resource: { group: "text", version: "text", resource: "text" },
    object: OBJECT,
    oldObject: OBJECT,
  },
};

/** The memory of a label without its text: two strings and a place. */
const MEMBER_BYTES = 256;

export function createReviewReader() {
  const picker = new JsonPicker(REVIEW);
  let length = 0;
  return {
    /**
     * Continues at the byte where it stopped. `bytes` begins with all bytes that arrived before.
     * @throws MeshError `BAD_REQUEST` for names beyond all limits and fields that come twice
     */
    scan(bytes: Buffer): void {
      length = bytes.length;
      if (length <= MAX_REVIEW_BYTES) picker.scan(bytes);
    },
    /** Undefined for a ConversionReview, another version, no JSON, more than `MAX_REVIEW_BYTES`. */
    get subject(): ReviewSubject | undefined {
      return length > MAX_REVIEW_BYTES ? undefined : subjectOf(picker.picked);
    },
    /** Upper bound of the heap bytes that the reader keeps. */
    get heldBytes(): number {
      return picker.members * MEMBER_BYTES + picker.textBytes;
    },
  };
}

function subjectOf(review: Picked | undefined): ReviewSubject | undefined {
  const apiVersion = REVIEW_VERSIONS.find((version) => version === review?.apiVersion);
  const request = objectOf(review?.request);
  const resource = objectOf(request?.resource);
  const operation = REVIEW_OPERATIONS.find((each) => each === request?.operation);
  if (apiVersion === undefined || review?.kind !== REVIEW_KIND || request === undefined) return undefined;
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

type PickedValue = Picked[string] | undefined;

function objectOf(value: PickedValue): Picked | undefined {
  return typeof value === "object" ? value : undefined;
}

function textOf(value: PickedValue): string {
  return typeof value === "string" ? value : "";
}

const NOTHING: Picked = Object.freeze(Object.create(null));

function metadataOf(object: PickedValue): Picked | undefined {
  const fields = objectOf(object);
  return fields === undefined ? undefined : (objectOf(fields.metadata) ?? NOTHING);
}

function labelsOf(metadata: Picked | undefined): Labels | undefined {
  return metadata === undefined ? undefined : ((objectOf(metadata.labels) ?? NOTHING) as Labels);
}

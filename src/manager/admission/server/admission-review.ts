// AdmissionReview v1. Pure. Invariants: objects are passed on unchanged, and every refusal begins with
// `ctrlmesh: `, so that users know its origin.
import { z } from "zod";
import { isObject } from "../../../api/rule.ts";
import { reviewAnswer } from "../../../kube/admission-review.ts";
import type { JsonPatchOperation } from "../../../kube/client/types.ts";
import { createStatus, type StatusDetails, StatusError, type StatusReason } from "../../../kube/status.ts";

const objectSchema = z.custom<object>(isObject, { error: "must be an object" }).nullish();

/** The answer repeats the uid and the name. Real ones have at most 36 and 253 characters. */
const [MAX_UID, MAX_NAME] = [253, 1_024];

const requestSchema = z.object({
  uid: z.string().min(1).max(MAX_UID),
  resource: z.object({ group: z.string(), version: z.string(), resource: z.string() }),
  subResource: z.string().optional(),
  operation: z.enum(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
  namespace: z.string().optional(),
  name: z.string().max(MAX_NAME).optional(),
  dryRun: z.boolean().optional(),
  object: objectSchema,
  oldObject: objectSchema,
});

const reviewSchema = z.object({
  apiVersion: z.literal("admission.k8s.io/v1"),
  kind: z.literal("AdmissionReview"),
  request: requestSchema,
});

export type AdmissionRequest = Readonly<z.output<typeof requestSchema>>;

export type AdmissionAnswer =
  | {
      readonly allowed: true;
      /** Absent or empty for no change. */
      readonly patch?: readonly JsonPatchOperation[];
      readonly warnings?: readonly string[];
    }
  | {
      readonly allowed: false;
      readonly reason: StatusReason;
      readonly message: string;
      /** kubectl shows the causes instead of the message. */
      readonly details?: StatusDetails;
      readonly warnings?: readonly string[];
    };

/** @throws StatusError `BadRequest` if the bytes are not an AdmissionReview v1 */
export function decodeReview(body: Uint8Array): AdmissionRequest {
  const result = reviewSchema.safeParse(parseJson(body));
  if (result.success) return result.data.request;
  const [issue] = result.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? "the body" : issue.path.join(".");
  throw new StatusError("BadRequest", `ctrlmesh: not an AdmissionReview of admission.k8s.io/v1: ${where}: ${issue?.message}`);
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8"));
  } catch (cause) {
    throw new StatusError("BadRequest", "ctrlmesh: the body is not JSON", undefined, { cause });
  }
}

export function encodeReview(uid: string, answer: AdmissionAnswer): object {
  return reviewAnswer("admission.k8s.io/v1", uid, responseOf(answer));
}

function responseOf(answer: AdmissionAnswer): object {
  const { warnings = [] } = answer;
  const more = warnings.length - MAX_WARNINGS;
  const shown = [...warnings.slice(0, MAX_WARNINGS), ...(more > 0 ? [`and ${more} more`] : [])];
  const prefixedWarnings = shown.length === 0 ? {} : { warnings: shown.map(withPrefix) };
  if (!answer.allowed) {
    const status = createStatus(answer.reason, withPrefix(answer.message), answer.details);
    return { allowed: false, status, ...prefixedWarnings };
  }
  const { patch: operations = [] } = answer;
  if (operations.length === 0) return { allowed: true, ...prefixedWarnings };
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch, ...prefixedWarnings };
}

const PREFIX = "ctrlmesh:";

/** More than a person reads. Without the bound, a pod of a thousand containers would cause as many. */
const MAX_WARNINGS = 32;

/**
 * More than a person reads. Without the bound, a list of a million invalid items would cause as many
 * problems.
 */
const MAX_CHARS = 16_384;

/** The text with the prefix, cut to the maximum length. */
function withPrefix(text: string): string {
  const shown = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}...` : text;
  return shown.startsWith(PREFIX) ? shown : `${PREFIX} ${shown}`;
}

// A call of the listener for the operator's webhooks: an admission review, or anything else that a webhook
// server answers. The layers note in its record what they decide.
import type { ReviewSubject } from "../../kube/admission-review.ts";
import { JSON_TYPE } from "../../kube/media-types.ts";
import type { Recipient } from "../../mesh/ownership/route-review.ts";
import type { CallNotes, HttpCall, Layer, Reply, ReplyHeaders } from "../http/handler.ts";

/** What became of a call; a label value in metrics. */
export type ReviewResult =
  /** The operator of this pod has answered a review. */
  | "local"
  /** A pod of the subset that answers for the object has answered. */
  | "forwarded"
  /** The answer to a peer names the subset that answers. */
  | "redirected"
  /** The object is outside of a global limit. */
  | "allowed"
  | "limited"
  | "unavailable"
  /** Not a review: the operator of this pod has answered. */
  | "passed"
  /** The client may not ask this, or its request cannot be read. */
  | "refused"
  | "failed"
  | "client-gone";

export interface ReviewNotes extends CallNotes {
  /** The client's. Bounds count by address, since API servers do not prove who they are. */
  readonly address: string;
  /** The URIs in the certificate of a client under the peers' name; undefined for all others. */
  readonly peerNames: readonly string[] | undefined;
  subject?: ReviewSubject;
  /** The role in which a peer asks this pod to answer, if the review is forwarded. */
  forwardedAs?: Recipient["as"];
  result?: ReviewResult;
  /** The subset that has answered or was asked last. */
  subset?: string;
  rule?: string;
}

export type ReviewCall = HttpCall<ReviewNotes>;
export type ReviewLayer = Layer<ReviewCall, Reply>;

/** The name by which peers call each other in TLS (SNI); every other name means the operator. */
export const PEER_SERVER_NAME = "peer.ctrlmesh";

export const FORWARDED = "x-ctrlmesh-review-forwarded";
export const REDIRECT_SUBSET = "x-ctrlmesh-review-subset";
export const REDIRECT_AS = "x-ctrlmesh-review-as";
/** The status of an answer that redirects a peer, since another subset answers for the object. */
export const MISDIRECTED = 421;

/** Why a call has no answer of an operator. The API server shows the message to the user. */
export class ReviewError extends Error {
  readonly status: number;
  /** Value of x-ctrlmesh-error. */
  readonly code: string;
  readonly result: ReviewResult;
  /** API servers repeat a call after `Retry-After`, so it is set only if no operator has seen the call. */
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, code: string, message: string, result: ReviewResult, retryAfterSeconds?: number) {
    super(message);
    this.name = "ReviewError";
    this.status = status;
    this.code = code;
    this.result = result;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function unavailable(code: string, message: string, retryAfterSeconds?: number): ReviewError {
  return new ReviewError(503, code, message, "unavailable", retryAfterSeconds);
}

export function jsonReply(status: number, value: object, more: ReplyHeaders = {}): Reply {
  const body = Buffer.from(JSON.stringify(value));
  const headers = { "content-type": JSON_TYPE, "content-length": String(body.length), ...more };
  return { status, headers, body };
}

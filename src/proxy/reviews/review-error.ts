// Why a call has no answer of an operator. The API server shows the message to the user.
import type { ReviewResult } from "./review-call.ts";

export class ReviewError extends Error {
  readonly status: number;
  /** Value of x-ctrlmesh-error. */
  readonly code: string;
  readonly result: ReviewResult;
  /** API servers repeat a call with a `Retry-After`, so only calls have one that nobody has seen. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    result: ReviewResult = "unavailable",
    retryAfterSeconds: number | undefined = undefined,
  ) {
    super(message);
    this.name = "ReviewError";
    this.status = status;
    this.code = code;
    this.result = result;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** @param code value of x-ctrlmesh-error */
export function unavailable(code: string, message: string): ReviewError {
  return new ReviewError(503, code, message);
}

// The answer to a request that a policy refuses. It differs from other refusals in its header
// x-ctrlmesh-error, and in a wait that the body may name although the header Retry-After does not.
import { type Status, StatusError } from "../../kube/status.ts";

export class PolicyError extends StatusError {
  override readonly status: Status;
  /** Value of x-ctrlmesh-error. */
  readonly errorCode: string;
  /** Value of Retry-After, in seconds; absent: the header is not sent, also if the body names a wait. */
  readonly retryAfterSeconds: number | undefined;

  constructor(errorCode: string, status: Status, retryAfterSeconds?: number) {
    super(status.reason, status.message, status.details);
    this.name = "PolicyError";
    this.status = status;
    this.errorCode = errorCode;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

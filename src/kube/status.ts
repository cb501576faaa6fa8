// Kubernetes Status errors (metav1.Status).
import { MeshError } from "../base/errors.ts";

// Of several reasons with one code, the last one is the usual one.
const CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Gone: 410,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
} as const;

/** The values of metav1.StatusReason that the project writes or reads. */
export type StatusReason = keyof typeof CODES;

const REASONS = new Map<number, StatusReason>(Object.entries(CODES).map(([reason, code]) => [code, reason as StatusReason]));

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** metav1.Status of a failure. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: "Failure";
  readonly message: string;
  readonly reason: StatusReason;
  readonly details?: StatusDetails;
  readonly code: number;
}

/** An error that is an answer: code `KUBE_STATUS`, with the Status to send. */
export class StatusError extends MeshError {
  readonly status: Status;

  constructor(reason: StatusReason, message: string, details?: StatusDetails, options?: ErrorOptions) {
    super("KUBE_STATUS", message, options);
    this.name = "StatusError";
    this.status = createStatus(reason, message, details);
  }
}

export function createStatus(reason: StatusReason, message: string, details?: StatusDetails): Status {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code: CODES[reason],
  };
}

/** The usual reason of an HTTP code; undefined if it has none. */
export function reasonOfCode(code: number): StatusReason | undefined {
  return REASONS.get(code);
}

/** True for a StatusError with one of these reasons, from this process or from the API server. */
export function isStatus(error: unknown, ...reasons: readonly StatusReason[]): error is StatusError {
  return error instanceof StatusError && reasons.includes(error.status.reason);
}

/** True for the refusal to create an object in a namespace that is being deleted. */
export function isNamespaceEnding(error: unknown): boolean {
  if (!isStatus(error, "Forbidden")) return false;
  return error.status.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") ?? false;
}

// The answers of the egress proxy itself. Each result has one status, and is a label value of the metric.

/** What came of a request. "allowed": the tunnel is open, or the answer has begun. */
export type EgressResult = "allowed" | keyof typeof ANSWERS | "no-tls" | "sni-mismatch" | "no-sni" | "client-gone";

const ANSWERS = {
  "bad-request": { status: 400, code: "BAD_REQUEST" },
  denied: { status: 403, code: "EGRESS_DENIED" },
  "address-refused": { status: 403, code: "EGRESS_ADDRESS_REFUSED" },
  /** A cluster of another subset, one that moves, and one to which a pod that was perhaps removed may not write. */
  "not-owned": { status: 403, code: "CLUSTER_NOT_OWNED" },
  moving: { status: 503, code: "CLUSTER_MOVES" },
  unproven: { status: 503, code: "HOME_UNPROVEN" },
  limited: { status: 429, code: "LIMITED" },
  upgrade: { status: 501, code: "UPGRADE_NOT_SUPPORTED" },
  unreachable: { status: 502, code: "EGRESS_UNREACHABLE" },
  open: { status: 503, code: "BREAKER_OPEN" },
  "not-ready": { status: 503, code: "NOT_READY" },
  "too-many": { status: 503, code: "TOO_MANY_REQUESTS" },
  fault: { status: 503, code: "FAULT_INJECTED" },
  timeout: { status: 504, code: "EGRESS_TIMEOUT" },
} as const;

export class EgressError extends Error {
  readonly result: keyof typeof ANSWERS;
  readonly status: number;
  readonly code: string;
  /** Name of the rule that decided. */
  readonly rule: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    result: keyof typeof ANSWERS,
    message: string,
    more: ErrorOptions & { readonly rule?: string; readonly status?: number; readonly retryAfterSeconds?: number } = {},
  ) {
    super(message, more);
    this.name = "EgressError";
    this.result = result;
    this.status = more.status ?? ANSWERS[result].status;
    this.code = ANSWERS[result].code;
    this.rule = more.rule;
    this.retryAfterSeconds = more.retryAfterSeconds;
  }
}

/** False if this proxy has refused the server's address. */
export function isServersFault(error: unknown): boolean {
  return error instanceof EgressError && error.result !== "address-refused" && error.result !== "denied";
}

// The answer to a request that a policy refuses: who refuses, and when to come again.
import type { Random } from "../../base/clock.ts";
import { RECOVER_ANNOTATION } from "../../base/recover-annotation.ts";
import { type Status, StatusError } from "../../kube/status.ts";
import type { RefusedBy } from "../../policy/engine/decision.ts";
import type { RuleOrigin } from "../../policy/policy.ts";

export class PolicyError extends StatusError {
  override readonly status: Status;
  readonly errorCode: string;
  /** In seconds. Undefined: no header Retry-After, even if the body names a wait. */
  readonly retryAfterSeconds: number | undefined;

  constructor(errorCode: string, status: Status, retryAfterSeconds?: number) {
    super(status.reason, status.message, status.details);
    this.name = "PolicyError";
    this.status = status;
    this.errorCode = errorCode;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** client-go repeats a request ten times at most and holds a worker meanwhile, so longer waits are cut. */
const MAX_WAIT_SECONDS = 10;

/** As in `CircuitBreaker shop/guard, rule "deletes"`. */
export function nameOfRule({ kind, namespace, name, rule }: RuleOrigin): string {
  return `${kind} ${namespace}/${name}, rule "${rule}"`;
}

/** Whole seconds; undefined if no wait helps. */
export function waitSeconds({ refusal: { waitMs } }: RefusedBy): number | undefined {
  return Number.isFinite(waitMs) ? Math.max(1, Math.ceil(waitMs / 1_000)) : undefined;
}

export function refusalText(refused: RefusedBy): string {
  const seconds = waitSeconds(refused);
  const { rule } = refused;
  const what = refused.refusal.kind === "limited" ? "limited" : "refused";
  const by = `${what} by ${nameOfRule(rule.origin)}`;
  if (seconds !== undefined) return `${by}: try again in ${seconds} s`;
  if (rule.limiter.kind !== "breaker") return by;
  // Manual: no time closes it.
  return `${by}: the breaker stays open until the annotation ${RECOVER_ANNOTATION} of ${rule.origin.kind} ${rule.origin.namespace}/${rule.origin.name} has another text`;
}

/** The value of Retry-After. It is spread, so that not all waiting clients come back at one moment. */
export function retryAfterOf(refused: RefusedBy, random: Random): number {
  const capped = Math.min(MAX_WAIT_SECONDS, waitSeconds(refused) ?? MAX_WAIT_SECONDS);
  return capped < MAX_WAIT_SECONDS ? capped + Math.floor(random() * 2) : MAX_WAIT_SECONDS - Math.floor(random() * 3);
}

// What the limits that match a request say of it together. Pure.
import type { Decision } from "../limiters/limiter.ts";
import type { LimitRule } from "../policy.ts";

export type Refusal = Exclude<Decision, { kind: "pass" }>;

export interface RefusedBy {
  readonly rule: LimitRule;
  readonly refusal: Refusal;
}

export interface AskedRule {
  readonly rule: LimitRule;
  readonly decision: Decision;
}

/** How often a rule has decided, by decision. */
export type DecisionCounters = Readonly<Record<Decision["kind"], { value: number }>>;

export function newCounters(): DecisionCounters {
  return { pass: { value: 0 }, limited: { value: 0 }, open: { value: 0 } };
}

/** The refusal that lasts longest. Rules in the shadow refuse nothing. */
export function worstOf(asked: readonly AskedRule[]): RefusedBy | undefined {
  let worst: RefusedBy | undefined;
  for (const { rule, decision } of asked) {
    if (decision.kind === "pass" || rule.mode === "Shadow") continue;
    if (worst === undefined || decision.waitMs > worst.refusal.waitMs) worst = { rule, refusal: decision };
  }
  return worst;
}

/** True if a rule refuses the request in any case: it must then not open the breaker of another rule. */
export function isStopped(asked: readonly AskedRule[]): boolean {
  return asked.some(({ rule, decision }) => rule.mode !== "Shadow" && decision.kind === "open" && decision.opens !== true);
}

// Metrics of policies. Invariant: the number of time series is bounded, whatever the objects contain: after 64 rules all others count as
// `other`.
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { type EgressRule, type FaultRule, type LimitRule, ruleName } from "../../policy/policy.ts";

type Rule = Pick<LimitRule | FaultRule | EgressRule, "origin" | "mode">;

export interface PolicyMetrics {
  /** A rule has decided about a request. */
  decided(rule: Rule, decision: "pass" | "limited" | "open" | "delay" | "abort" | "deny"): void;
  /** The rules whose breakers are open now. */
  opened(rules: readonly LimitRule[]): void;
  delayed(seconds: number): void;
  /** A delay that was left out, because too many requests were delayed already. */
  delaySkipped(): void;
}

const MAX_RULES = 64;
const OTHER = "other";

export function createPolicyMetrics(registry: Registry): PolicyMetrics {
  const registers = [registry];
  const decisions = new Counter({
    name: "ctrlmesh_proxy_policy_decisions_total",
    help: "Decisions of the rules of policies about requests. In the mode Shadow a decision changes nothing.",
    labelNames: ["kind", "rule", "decision", "mode"],
    registers,
  });
  const open = new Gauge({
    name: "ctrlmesh_proxy_breaker_open",
    help: "1 for each rule whose breaker is open now.",
    labelNames: ["rule"],
    registers,
  });
  const delays = new Histogram({
    name: "ctrlmesh_proxy_fault_delay_seconds",
    help: "Delays that fault rules have added to requests.",
    buckets: [0.01, 0.1, 0.5, 1, 5, 10, 30],
    registers,
  });
  const skipped = new Counter({
    name: "ctrlmesh_proxy_fault_delays_skipped_total",
    help: "Delays of fault rules that were left out, because 256 requests were delayed already.",
    registers,
  });
  const names = new Set<string>();
  const label = ({ origin }: Pick<Rule, "origin">) => {
    const rule = ruleName(origin);
    if (names.size < MAX_RULES) names.add(rule);
    return names.has(rule) ? rule : OTHER;
  };
  return {
    decided(rule, decision) {
      decisions.inc({ kind: rule.origin.kind, rule: label(rule), decision, mode: rule.mode });
    },
    opened(rules) {
      open.reset();
      for (const rule of rules) open.set({ rule: label(rule) }, 1);
    },
    delayed: (seconds) => delays.observe(seconds),
    delaySkipped: () => skipped.inc(),
  };
}

// Metrics of policies. Invariant: the number of time series is bounded: beyond 64 rules in force all others
// count as `other`. The series of a rule end with it.
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { type EgressRule, type FaultRule, type LimitRule, ruleName } from "../../policy/policy.ts";

type Rule = Pick<LimitRule | FaultRule | EgressRule, "origin" | "mode">;

export type PolicyMetrics = ReturnType<typeof createPolicyMetrics>;

type DecisionLabels = Record<"kind" | "rule" | "decision" | "mode", string>;

const MAX_RULES = 64;
const OTHER = "other";

export function createPolicyMetrics(registry: Registry) {
  const registers = [registry];
  const decisions = new Counter({
    name: "ctrlmesh_proxy_policy_decisions_total",
    help: "Decisions of the rules of policies about requests. In the mode Shadow a decision changes nothing.",
    labelNames: ["kind", "rule", "decision", "mode"],
    registers,
  });
  const open = new Gauge({
    name: "ctrlmesh_proxy_breaker_open",
    help: "1 for each enforced rule whose breaker is open now.",
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
  /** The rules that have a label of their own, each with the label sets under which it was counted. */
  const seriesOf = new Map<string, Map<string, DecisionLabels>>();
  const label = ({ origin }: Pick<Rule, "origin">) => {
    const rule = ruleName(origin);
    if (!seriesOf.has(rule) && seriesOf.size < MAX_RULES) seriesOf.set(rule, new Map());
    return seriesOf.has(rule) ? rule : OTHER;
  };
  return {
    /** Forgets all other rules. */
    keep(rules: readonly Rule[]): void {
      const kept = new Set(rules.map(({ origin }) => ruleName(origin)));
      for (const [rule, series] of seriesOf) {
        if (kept.has(rule)) continue;
        for (const labels of series.values()) decisions.remove(labels);
        seriesOf.delete(rule);
      }
    },
    decided(rule: Rule, decision: "pass" | "limited" | "open" | "delay" | "abort" | "deny"): void {
      const labels = { kind: rule.origin.kind, rule: label(rule), decision, mode: rule.mode };
      seriesOf.get(labels.rule)?.set(`${labels.kind} ${decision} ${labels.mode}`, labels);
      decisions.inc(labels);
    },
    setOpen(openRules: readonly LimitRule[]): void {
      open.reset();
      for (const rule of openRules) if (rule.mode === "Enforce") open.set({ rule: label(rule) }, 1);
    },
    delayed: (seconds: number) => delays.observe(seconds),
    delaySkipped: () => skipped.inc(),
  };
}

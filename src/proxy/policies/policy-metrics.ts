// Metrics of policies. Invariants: the number of time series is bounded: of each metric 64 rules in force have
// series of their own, and all others count as `other`; so a breaker that opens has its own, whatever decided
// before. The series of a rule end with it. A decision is an addition: the labels are read at a scrape.
import { Counter, Gauge, Histogram, type Registry } from "../../base/metrics.ts";
import type { Transition } from "../../policy/engine/breaker-memory.ts";
import type { DecisionCounters } from "../../policy/engine/decision.ts";
import { type EgressRule, type FaultRule, type LimitRule, ruleName } from "../../policy/policy.ts";

type Rule = Pick<LimitRule | FaultRule | EgressRule, "origin" | "mode">;

export type PolicyMetrics = ReturnType<typeof createPolicyMetrics>;

const MAX_RULES = 64;
const OTHER = "other";

export function createPolicyMetrics(registry: Registry) {
  const registers = [registry];
  const decisions = createRuleSeries(["kind", "rule", "decision", "mode"]);
  const transitions = createRuleSeries(["rule", "to", "cause"]);
  new Counter({
    name: "ctrlmesh_proxy_policy_decisions_total",
    help: "Decisions of the rules of policies about requests. In the mode Shadow a decision changes nothing.",
    labelNames: ["kind", "rule", "decision", "mode"],
    registers,
    collect() {
      this.reset();
      for (const { labels, value } of decisions.cells()) this.inc(labels, value);
    },
  });
  new Counter({
    name: "ctrlmesh_proxy_breaker_transitions_total",
    help: "How often the breaker of each enforced rule has opened, half opened and closed, by the cause.",
    labelNames: ["rule", "to", "cause"],
    registers,
    collect() {
      this.reset();
      for (const { labels, value } of transitions.cells()) this.inc(labels, value);
    },
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
  const decisionCell = ({ origin, mode }: Rule, decision: string) =>
    decisions.cell(ruleName(origin), { kind: origin.kind, decision, mode });
  return {
    /** Forgets all other rules. */
    keep(rules: readonly Rule[]): void {
      const kept = new Set(rules.map(({ origin }) => ruleName(origin)));
      decisions.keep(kept);
      transitions.keep(kept);
    },
    countersOf: (rule: Rule): DecisionCounters => ({
      pass: decisionCell(rule, "pass"),
      limited: decisionCell(rule, "limited"),
      open: decisionCell(rule, "open"),
    }),
    decided(rule: Rule, decision: "pass" | "delay" | "abort" | "deny"): void {
      decisionCell(rule, decision).value++;
    },
    moved({ rule: { origin, mode }, to, reason }: Transition): void {
      if (mode === "Enforce") transitions.cell(ruleName(origin), { to, cause: reason }).value++;
    },
    /** @param openRules those that are enforced */
    setOpen(openRules: readonly Rule[]): void {
      open.reset();
      for (const [at, { origin }] of openRules.entries()) open.set({ rule: at < MAX_RULES ? ruleName(origin) : OTHER }, 1);
    },
    delayed: (seconds: number) => delays.observe(seconds),
    delaySkipped: () => skipped.inc(),
  };
}

interface Cell {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
}

/** The counts of one metric, by rule and further labels. @param labelNames in the order of the output */
function createRuleSeries(labelNames: readonly string[]) {
  const byRule = new Map<string, Map<string, Cell>>([[OTHER, new Map()]]);
  return {
    /** The cell counts until `keep` forgets its rule. */
    cell(rule: string, others: Readonly<Record<string, string>>): Cell {
      if (!byRule.has(rule) && byRule.size <= MAX_RULES) byRule.set(rule, new Map());
      const name = byRule.has(rule) ? rule : OTHER;
      const cells = byRule.get(name) ?? new Map<string, Cell>();
      const key = Object.values(others).join(" ");
      const known = cells.get(key);
      if (known !== undefined) return known;
      const labels = Object.fromEntries(labelNames.map((each) => [each, each === "rule" ? name : (others[each] ?? "")]));
      const cell: Cell = { labels, value: 0 };
      cells.set(key, cell);
      return cell;
    },
    keep(rules: ReadonlySet<string>): void {
      for (const rule of byRule.keys()) if (rule !== OTHER && !rules.has(rule)) byRule.delete(rule);
    },
    /** What has happened at least once. */
    cells: (): Cell[] => [...byRule.values()].flatMap((cells) => [...cells.values()].filter(({ value }) => value > 0)),
  };
}

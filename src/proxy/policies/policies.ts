// The policies that this proxy enforces: the engine of limits, and the rules of faults. Invariants: limits
// fail static, so what was enforced last stays in force without a manager and over a restart; faults fail
// off, so a fault that nobody can take back ends by itself. Asked by the layers `fault` and `limit` and by
// the egress proxy; the handler of the resource type sets the rules.
import type { Clock, Random } from "../../base/clock.ts";
import { createEgressRules, type EgressVerdict } from "../../policy/egress-rules.ts";
import { type Admission, createEngine, type Engine, type StoredBreaker } from "../../policy/engine/engine.ts";
import { drawFault, type Fault, NO_FAULT } from "../../policy/engine/faults.ts";
import { createMatcher, type Matcher } from "../../policy/matcher.ts";
import { type FaultRule, NO_POLICIES, type PolicySet } from "../../policy/policy.ts";
import type { PolicyRequest } from "../../policy/policy-request.ts";
import type { PolicyReportMessage, RuleStateMessage } from "../../wire/messages.ts";
import { createDelay, type Delay } from "./delay.ts";
import type { PolicyMetrics } from "./policy-metrics.ts";

/** What the layers and the egress proxy ask. */
export interface Policies {
  /** Without rules nothing has to be asked. */
  readonly hasLimits: boolean;
  readonly hasFaults: boolean;
  admit(request: PolicyRequest): Admission;
  fault(request: PolicyRequest): Fault;
  /** May a request go to this other server? */
  judge(request: PolicyRequest): EgressVerdict;
  /** An enforced rule allows some servers, so all others are refused. */
  readonly isAllowList: boolean;
  readonly delay: Delay;
}

/** Names a rule of an object. */
type RuleKey = string;

function keyOf({ uid, rule }: { readonly uid: string; readonly rule: string }): RuleKey {
  return `${uid}/${rule}`;
}

export interface RunningPolicies extends Policies {
  /** Enforces these rules from now on. @param stored the breakers before a restart of the process */
  enforce(policies: PolicySet, digest: string, stored?: readonly StoredBreaker[]): void;
  readonly openBreakers: readonly StoredBreaker[];
  readonly report: PolicyReportMessage;
  /** Calls the listener after every change of the rules or of a breaker. */
  onChange(listener: () => void): void;
}

export interface PoliciesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /**
   * Milliseconds for which the proxy has followed no manager; 0 while it follows one, Infinity if this
   * process has followed none.
   */
  readonly managerAwayMs: () => number;
  readonly metrics: PolicyMetrics;
}

/** Faults stop when no manager could take them back for so long. */
const FAULTS_END_MS = 60_000;
const MAX_REPORTED = 64;

export function createPolicies({ clock, random, managerAwayMs, metrics }: PoliciesOptions): RunningPolicies {
  // Wall time, so that it can be stored, but one that never goes back.
  const offsetMs = clock.now() - clock.monotonicMs();
  const now = () => offsetMs + clock.monotonicMs();
  const listeners: (() => void)[] = [];
  /** When each breaker closed in this process, by rule. */
  const closedAt = new Map<RuleKey, RuleStateMessage>();
  let current: PolicySet = NO_POLICIES;
  let digest = "";
  let faults: Matcher<FaultRule> = createMatcher([]);
  let egress = createEgressRules([]);

  const states = (): RuleStateMessage[] =>
    engine.states().flatMap(({ rule: { origin }, breaker, state }) => {
      const since = breaker !== undefined && breaker.kind !== "closed" ? breaker.sinceMs : undefined;
      const key = keyOf(origin);
      if (breaker === undefined || since === undefined) return closedAt.get(key) ?? [];
      return { uid: origin.uid, rule: origin.rule, opened: state === "Opened", sinceMs: since };
    });
  let before = new Map<RuleKey, RuleStateMessage>();
  const changed = () => {
    const open = new Map(states().flatMap((each) => (each.opened ? [[keyOf(each), each] as const] : [])));
    for (const [key, each] of before) if (!open.has(key)) closedAt.set(key, { ...each, opened: false, sinceMs: now() });
    for (const key of open.keys()) closedAt.delete(key);
    before = open;
    metrics.opened(engine.states().flatMap(({ rule }) => (open.has(keyOf(rule.origin)) ? [rule] : [])));
    for (const listener of listeners) listener();
  };
  let engine: Engine = createEngine({ now, changed });

  return {
    delay: createDelay(clock, metrics),
    get hasLimits() {
      return current.limits.length > 0;
    },
    get hasFaults() {
      return current.faults.length > 0;
    },
    admit(request) {
      const admission = engine.admit(request);
      for (const { rule, verdict } of admission.decisions) metrics.decided(rule, verdict.kind);
      return admission;
    },
    fault(request) {
      if (managerAwayMs() >= FAULTS_END_MS) return NO_FAULT;
      const fault = drawFault(faults, request, clock.now(), random);
      for (const { rule, what } of fault.fired) metrics.decided(rule, what);
      return fault;
    },
    judge(request) {
      const verdict = egress.judge(request);
      for (const { rule, decision } of verdict.words) metrics.decided(rule, decision);
      return verdict;
    },
    get isAllowList() {
      return egress.isAllowList;
    },
    enforce(policies, nextDigest, stored) {
      current = policies;
      digest = nextDigest;
      if (stored !== undefined) engine = createEngine({ now, stored, changed });
      faults = createMatcher(policies.faults);
      egress = createEgressRules(policies.egress);
      metrics.keep([...policies.limits, ...policies.faults, ...policies.egress]);
      engine.update(policies.limits);
      const kept = new Set(policies.limits.map(({ origin }) => keyOf(origin)));
      for (const key of closedAt.keys()) if (!kept.has(key)) closedAt.delete(key);
    },
    get openBreakers() {
      return engine.openBreakers();
    },
    get report() {
      const rules = states().sort((a, b) => Number(b.opened) - Number(a.opened));
      return { digest, rules: rules.slice(0, MAX_REPORTED) };
    },
    onChange: (listener) => void listeners.push(listener),
  };
}

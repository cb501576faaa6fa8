// The policies that this proxy enforces. Invariants: limits fail static, so the last ones stay in force
// without a manager and over a restart; faults fail off, so a fault that nobody can take back ends by itself;
// a client that leaves ends its delay.
import type { AbortSource } from "../../base/abort.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { createEgressRules, type EgressDecision } from "../../policy/egress-rules.ts";
import { createEngine, type Engine, type LimitDecision, type StoredBreaker, shareKeyOf } from "../../policy/engine/engine.ts";
import { type Abort, type Delay, drawAbort, drawDelay } from "../../policy/engine/faults.ts";
import { createMatcher, type Matcher } from "../../policy/matcher.ts";
import { type EgressRule, type FaultRule, NO_POLICIES, type PolicySet, ruleName } from "../../policy/policy.ts";
import type { PolicyRequest } from "../../policy/policy-request.ts";
import type { BudgetShare } from "../../wire/budget-type.ts";
import type { PolicyReportMessage, RuleStateMessage } from "../../wire/messages.ts";
import type { PolicyMetrics } from "./policy-metrics.ts";

export type RunningPolicies = ReturnType<typeof createPolicies>;

/** What the layers and the egress proxy ask. */
export type Policies = Omit<
  RunningPolicies,
  "enforce" | "openBreakers" | "report" | "onChange" | "share" | "wantsMore" | "onWant"
>;

function keyOf({ uid, rule }: { readonly uid: string; readonly rule: string }): string {
  return `${uid}/${rule}`;
}

/** For the access log. */
export interface Waited {
  readonly seconds: number;
  readonly rule: string;
}

export interface PoliciesOptions extends Pick<ProcessContext, "clock" | "random"> {
  /** 0 while the proxy follows a manager, Infinity if this process has followed none. */
  readonly managerAwayMs: () => number;
  readonly metrics: PolicyMetrics;
}

/** Faults end when no manager could take them back for this time. */
const FAULTS_END_MS = 60_000;
/** Requests that are delayed at a time. Further ones pass without a delay. */
const MAX_DELAYED = 256;
const MAX_REPORTED = 64;

export function createPolicies({ clock, random, managerAwayMs, metrics }: PoliciesOptions) {
  // Wall time, so that it can be stored, but one that never goes back.
  const offsetMs = clock.now() - clock.monotonicMs();
  const now = () => offsetMs + clock.monotonicMs();
  const listeners: (() => void)[] = [];
  /** The breakers that closed in this process. */
  const closedAt = new Map<string, RuleStateMessage>();
  let current: PolicySet = NO_POLICIES;
  let digest = "";
  let faults: Matcher<FaultRule> = createMatcher([]);
  let egress = createEgressRules([]);

  const states = (): RuleStateMessage[] =>
    engine.states().flatMap(({ rule: { origin }, breaker, state }) => {
      const since = breaker !== undefined && breaker.kind !== "closed" ? breaker.sinceMs : undefined;
      const key = keyOf(origin);
      if (breaker === undefined || since === undefined) return closedAt.get(key) ?? [];
      const halfOpen = breaker.kind === "probing";
      return { uid: origin.uid, rule: origin.rule, opened: state === "Opened", sinceMs: since, halfOpen, cause: "" };
    });
  let before = new Map<string, RuleStateMessage>();
  const changed = () => {
    const open = new Map(states().flatMap((each) => (each.opened ? [[keyOf(each), each] as const] : [])));
    for (const [key, each] of before)
      if (!open.has(key)) closedAt.set(key, { ...each, opened: false, halfOpen: false, cause: "", sinceMs: now() });
    for (const key of open.keys()) closedAt.delete(key);
    before = open;
    metrics.setOpen(engine.states().flatMap(({ rule }) => (open.has(keyOf(rule.origin)) ? [rule] : [])));
    for (const listener of listeners) listener();
  };
  const wantListeners: (() => void)[] = [];
  const wanted = () => {
    for (const listener of wantListeners) listener();
  };
  let engine: Engine = createEngine({ now, changed, wanted });
  let shares: ReadonlyMap<string, number> = new Map();

  const areFaultsOff = () => managerAwayMs() >= FAULTS_END_MS;
  const faultDeps = () => ({ matcher: faults, random, fired: metrics.decided });
  return {
    wait: createWait(clock, metrics),
    /** Without limits, callers need not ask `limit`. */
    get hasLimits(): boolean {
      return current.limits.length > 0;
    },
    get hasFaults(): boolean {
      return current.faults.length > 0;
    },
    limit(request: PolicyRequest): LimitDecision {
      const limited = engine.decide(request);
      for (const { rule, decision } of limited.decisions) metrics.decided(rule, decision.kind);
      return limited;
    },
    /** The request waits for so long, and then asks for an abort. */
    delay(request: PolicyRequest): Delay | undefined {
      return areFaultsOff() ? undefined : drawDelay(request, clock.now(), faultDeps());
    },
    abort(request: PolicyRequest): Abort | undefined {
      return areFaultsOff() ? undefined : drawAbort(request, clock.now(), faultDeps());
    },
    /** For a request to another server than the API server. */
    judge(request: PolicyRequest): EgressDecision {
      const judged = egress.judge(request);
      for (const { rule, decision } of judged.decisions) metrics.decided(rule, decision);
      return judged;
    },
    /** For each address of the server, the rule that refuses it, if there is one. */
    judgeAddresses(request: PolicyRequest, addresses: readonly string[]): readonly (EgressRule | undefined)[] {
      const found = addresses.map((address) => egress.refusing(request, address));
      for (const rule of new Set(found.flat())) metrics.decided(rule, "deny");
      return found.map((rules) => rules.find(({ mode }) => mode === "Enforce"));
    },
    /** True if an enforced rule allows some servers, so that all others are refused. */
    get isAllowList(): boolean {
      return egress.isAllowList;
    },
    /** @param stored the breakers before a restart of the process */
    enforce(policies: PolicySet, nextDigest: string, stored?: readonly StoredBreaker[]): void {
      current = policies;
      digest = nextDigest;
      if (stored !== undefined) engine = createEngine({ now, stored, changed, wanted });
      faults = createMatcher(policies.faults);
      egress = createEgressRules(policies.egress);
      metrics.keep([...policies.limits, ...policies.faults, ...policies.egress]);
      engine.setShares(shares);
      engine.update(policies.limits);
      const kept = new Set(policies.limits.map(({ origin }) => keyOf(origin)));
      for (const key of closedAt.keys()) if (!kept.has(key)) closedAt.delete(key);
    },
    /** What this pod has of the budgets that pods divide. They may come before their rules. */
    share(next: readonly BudgetShare[]): void {
      shares = new Map(next.map((share) => [shareKeyOf(share), share.millionths]));
      engine.setShares(shares);
    },
    wantsMore: (share: Pick<BudgetShare, "uid" | "rule">): boolean => engine.wantsMore(shareKeyOf(share)),
    /** Calls the listener when this pod begins to want a larger share. */
    onWant: (listener: () => void): void => void wantListeners.push(listener),
    get openBreakers(): readonly StoredBreaker[] {
      return engine.openBreakers();
    },
    get report(): PolicyReportMessage {
      const rules = states().sort((a, b) => Number(b.opened) - Number(a.opened));
      return { digest, rules: rules.slice(0, MAX_REPORTED) };
    },
    /** Calls the listener after every change of the rules or of a breaker. */
    onChange: (listener: () => void): void => void listeners.push(listener),
  };
}

function createWait(clock: Clock, metrics: Pick<PolicyMetrics, "delayed" | "delaySkipped">) {
  let delayed = 0;
  /** Resolves with what the request has waited; undefined if too many wait. @throws MeshError `ABORTED` when the signal fires */
  return async ({ ms, rule }: Delay, signal: AbortSource): Promise<Waited | undefined> => {
    if (delayed >= MAX_DELAYED) {
      metrics.delaySkipped();
      return undefined;
    }
    delayed++;
    try {
      await sleep(clock, ms, signal);
      const seconds = ms / 1_000;
      metrics.delayed(seconds);
      return { seconds, rule: ruleName(rule.origin) };
    } finally {
      delayed--;
    }
  };
}

// The policies that this proxy enforces. Invariants: limits fail static, so the last ones stay in force
// without a manager and over a restart. Faults fail off, so a fault that nobody can take back ends by itself.
// A client that leaves ends its delay. Each change of a breaker is logged, counted and reported.
import type { AbortSource } from "../../base/abort.ts";
import { type Clock, sleep, type Timer } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { BudgetShare } from "../../mesh/contract/budget-type.ts";
import type { PolicyReportMessage, RuleStateMessage } from "../../mesh/contract/messages.ts";
import { createEgressRules, type EgressDecision } from "../../policy/egress-rules.ts";
import type { StoredBreaker, Transition } from "../../policy/engine/breaker-memory.ts";
import { createEngine, type Engine, type LimitDecision } from "../../policy/engine/engine.ts";
import { type Abort, type Delay, drawAbort, drawDelay, isInEffect, type Waited } from "../../policy/engine/faults.ts";
import { createMatcher, type Matcher } from "../../policy/matcher.ts";
import {
  type EgressRule,
  type FaultRule,
  type LimitRule,
  NO_POLICIES,
  type PolicySet,
  ruleKey,
  ruleName,
} from "../../policy/policy.ts";
import type { PolicyRequest } from "../../policy/policy-request.ts";
import { describeRules } from "./describe-rules.ts";
import type { PolicyMetrics } from "./policy-metrics.ts";

export type RunningPolicies = ReturnType<typeof createPolicies>;

/** What the layers, the egress proxy and the debug pages ask. */
export type Policies = Omit<
  RunningPolicies,
  "restore" | "enforce" | "openBreakers" | "report" | "onChange" | "share" | "wantsMore" | "onWant"
>;

export interface PoliciesOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  /** 0 while the proxy follows a manager, Infinity if this process has followed none. */
  readonly managerAwayMs: () => number;
  readonly metrics: PolicyMetrics;
}

/** Faults end when no manager could take them back for this time. */
const FAULTS_END_MS = 60_000;
/** Requests that are delayed at a time. Further ones pass without a delay. */
const MAX_DELAYED = 256;
const MAX_REPORTED = 64;

export function createPolicies({ clock, random, managerAwayMs, metrics, log }: PoliciesOptions) {
  // Wall time, so that it can be stored, but one that never goes back.
  const offsetMs = clock.now() - clock.monotonicMs();
  const now = () => offsetMs + clock.monotonicMs();
  const listeners: ((hasMoved: boolean) => void)[] = [];
  let current: PolicySet = NO_POLICIES;
  let digest = "";
  let faults: Matcher<FaultRule> = createMatcher([]);
  let egress = createEgressRules([]);
  let timer: Timer | undefined;
  const wantListeners: (() => void)[] = [];
  const wanted = () => {
    for (const listener of wantListeners) listener();
  };
  /** The resources whose objects limits count; "*" for all. */
  let counted: ReadonlySet<string> = new Set();

  /** Breakers half open without a request. */
  const arm = () => {
    timer?.cancel();
    timer = Number.isFinite(engine.dueMs) ? clock.after(Math.max(0, engine.dueMs - now()), wake) : undefined;
  };
  const wake = () => {
    engine.advance();
    arm();
  };
  const changed = (transitions: readonly Transition[]) => {
    for (const transition of transitions) {
      metrics.moved(transition);
      logTransition(transition, log);
    }
    metrics.setOpen(
      engine
        .states()
        .flatMap(({ rule, opened, state }) =>
          opened !== undefined && state === "Opened" && rule.mode === "Enforce" ? [rule] : [],
        ),
    );
    arm();
    for (const listener of listeners) listener(transitions.length > 0);
  };
  const startEngine = (stored: readonly StoredBreaker[]): Engine =>
    createEngine({
      now,
      stored,
      changed,
      wanted,
      countersOf: metrics.countersOf,
      forgotten: (breaker) => log.warn(breaker, "an open breaker of a rule that is gone is forgotten for lack of room"),
    });
  let engine = startEngine([]);
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
    /** True if a limit is a percentage of the objects of this resource. @param resource its plural name */
    countsObjects: (resource: string): boolean => counted.has(resource) || counted.has("*"),
    limit: (request: PolicyRequest): LimitDecision => engine.decide(request),
    /** The request waits for so long, and then asks for an abort. */
    delay(request: PolicyRequest): Delay | undefined {
      return areFaultsOff() ? undefined : drawDelay(request, clock.now(), faultDeps());
    },
    abort(request: PolicyRequest): Abort | undefined {
      return areFaultsOff() ? undefined : drawAbort(request, clock.now(), faultDeps());
    },
    /** The rules that match the request, and who would refuse it now. Nothing is charged, drawn or counted. */
    matching(request: PolicyRequest) {
      const inEffect = areFaultsOff() ? [] : faults.match(request).filter((rule) => isInEffect(rule, clock.now()));
      return { faults: inEffect, hosts: egress.judge(request), ...engine.ask(request) };
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
    /** The rules in force, for people. */
    describe: (): readonly object[] => describeRules(engine.states(), engine.figures(), current, now()),
    /** Before `enforce`. @param breakers those before a restart of the process */
    restore(breakers: readonly StoredBreaker[]): void {
      engine = startEngine(breakers);
      engine.setShares(shares);
    },
    enforce(policies: PolicySet, nextDigest: string): void {
      current = policies;
      digest = nextDigest;
      faults = createMatcher(policies.faults);
      egress = createEgressRules(policies.egress);
      metrics.keep([...policies.limits, ...policies.faults, ...policies.egress]);
      counted = countedResources(policies.limits);
      engine.update(policies.limits);
    },
    /** What this pod has of the budgets that pods divide. They may come before their rules. */
    share(next: readonly BudgetShare[]): void {
      shares = new Map(next.map((share) => [ruleKey(share), share.millionths]));
      engine.setShares(shares);
    },
    wantsMore: (share: Pick<BudgetShare, "uid" | "rule">): boolean => engine.wantsMore(ruleKey(share)),
    /** Calls the listener when this pod begins to want a larger share. */
    onWant: (listener: () => void): void => void wantListeners.push(listener),
    get openBreakers(): readonly StoredBreaker[] {
      return engine.openBreakers();
    },
    get report(): PolicyReportMessage {
      const rules = engine.states().flatMap(({ rule: { origin }, state, sinceMs, opened }): RuleStateMessage[] => {
        if (sinceMs === undefined) return [];
        const { figure: cause = "" } = opened ?? {};
        return [
          { uid: origin.uid, rule: origin.rule, opened: opened !== undefined, sinceMs, halfOpen: state === "HalfOpen", cause },
        ];
      });
      rules.sort((a, b) => Number(b.opened) - Number(a.opened));
      return { digest, rules: rules.slice(0, MAX_REPORTED) };
    },
    /** Calls the listener after every change of the rules or of a breaker. */
    onChange: (listener: (hasMoved: boolean) => void): void => void listeners.push(listener),
  };
}

function logTransition({ rule: { origin, mode }, to, reason, figure }: Transition, log: ProcessContext["log"]): void {
  const { kind, namespace, name, rule } = origin;
  const fields = { kind, policy: `${namespace}/${name}`, rule, mode, reason, cause: figure };
  if (to === "Opened") log.warn(fields, "a breaker has opened");
  else if (to === "HalfOpen") log.info(fields, "a breaker is half-open: the next requests test the server");
  else log.info(fields, "a breaker has closed");
}

/** True for a rule that allows deletes in percent of the objects that there are. */
export function countsDeletes({ limiter }: LimitRule): boolean {
  return limiter.kind === "deletes" || (limiter.kind === "breaker" && limiter.deletes !== undefined);
}

/** Names of resources, without their subresources; "*" for all. */
function countedResources(limits: readonly LimitRule[]): Set<string> {
  const names = limits.filter(countsDeletes).flatMap(({ match }) => match.resources.flatMap(({ resources }) => resources));
  return new Set(names.map((name) => name.split("/", 1)[0] ?? name));
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

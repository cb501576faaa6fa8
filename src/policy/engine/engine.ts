// Decides whether a request may pass, by all limits that match it. Invariants: all limits are asked before any
// is charged, so a refused request costs nothing. A request that all let pass costs no memory for a rule that
// only counts. State belongs to a rule by its name, so an edit resets nothing.
import { withoutExempted } from "../exemptions.ts";
import type { Opened } from "../limiters/breaker-state.ts";
import { createLimiter } from "../limiters/create-limiter.ts";
import { type Decision, type Figures, type Limiter, type LimiterState, PASS, type Ticket } from "../limiters/limiter.ts";
import { createMatcher, type Matcher } from "../matcher.ts";
import { type LimitRule, ruleKey } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";
import { createAbsentBreakers, createTransitions, type StoredBreaker, storedBreaker, type Transition } from "./breaker-memory.ts";
import { type AskedRule, type DecisionCounters, isStopped, newCounters, type RefusedBy, worstOf } from "./decision.ts";
import { NOTHING_TO_SETTLE, type Permit, permitOf } from "./permit.ts";

export type LimitDecision = ({ readonly kind: "refused" } & RefusedBy) | { readonly kind: "permitted"; readonly permit: Permit };

export interface RuleState {
  readonly rule: LimitRule;
  readonly state: LimiterState;
  /** Undefined: the rule is no breaker, or it has been closed since the start of the process. */
  readonly sinceMs: number | undefined;
  /** Undefined for all that is no open or half-open breaker. */
  readonly opened: Opened | undefined;
  /** When an open breaker becomes half-open; Infinity for all others. */
  readonly dueMs: number;
}

export type Engine = ReturnType<typeof createEngine>;

interface EngineOptions {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** The breakers before a restart of the process. */
  readonly stored?: readonly StoredBreaker[];
  /** Called after each change of the rules or of breakers. */
  readonly changed?: (transitions: readonly Transition[]) => void;
  /** Called when the pod begins to want a larger share of a budget. */
  readonly wanted?: () => void;
  /** Asked once for each rule that decides, after each change of the rules. */
  readonly countersOf?: (rule: LimitRule) => DecisionCounters;
  /** Called when the breaker of a rule that is gone is forgotten for lack of room. */
  readonly forgotten?: (breaker: StoredBreaker) => void;
}

const PERMITTED: LimitDecision = { kind: "permitted", permit: NOTHING_TO_SETTLE };

interface Entry {
  readonly key: string;
  readonly rule: LimitRule;
  readonly match: LimitRule["match"];
  readonly limiter: Limiter;
  counters?: DecisionCounters;
}

export function createEngine({
  now,
  stored = [],
  changed = () => {},
  countersOf = newCounters,
  wanted = () => {},
  forgotten,
}: EngineOptions) {
  const absent = createAbsentBreakers(forgotten);
  let entries: readonly Entry[] = [];
  let byKey: ReadonlyMap<string, Entry> = new Map();
  let matcher: Matcher<Entry> = createMatcher(entries);
  const transitions = createTransitions((key) => byKey.get(key));
  let dueMs = Number.POSITIVE_INFINITY;
  let hasExemptions = false;
  let shares: ReadonlyMap<string, number> = new Map();

  // If the clock was set back between two processes, the time of a breaker begins now.
  for (const breaker of stored) absent.remember({ ...breaker, sinceMs: Math.min(breaker.sinceMs, now()) });

  const tell = (always = false) => {
    if (transitions.isEmpty && !always) return;
    const told = transitions.take();
    dueMs = Number.POSITIVE_INFINITY;
    for (const { limiter } of entries) if (limiter.breaker !== undefined) dueMs = Math.min(dueMs, limiter.breaker.dueMs);
    changed(told);
  };
  const advance = () => {
    const nowMs = now();
    for (const { limiter } of entries)
      if (limiter.breaker !== undefined && limiter.breaker.dueMs <= nowMs) limiter.breaker.advance(nowMs);
    tell();
  };
  const limiterOf = (key: string, rule: LimitRule, nowMs: number, known: Entry | undefined): Limiter => {
    const { limiter: spec, recovery } = rule;
    if (known?.limiter.edit(spec, nowMs)) return known.limiter;
    const before = spec.kind === "breaker" ? absent.take(key) : undefined;
    const limiter: Limiter = createLimiter({
      spec,
      startMs: nowMs,
      recovery,
      before,
      moved: (to, reason, figure) => transitions.add(key, limiter, { to, reason, figure }),
      wanted,
    });
    return limiter;
  };
  const applyShares = () => {
    for (const { key, limiter } of entries) limiter.setShare?.(shares.get(key) ?? 0, now());
  };
  const count = (entry: Entry, kind: Decision["kind"]) => {
    entry.counters ??= countersOf(entry.rule);
    entry.counters[kind].value++;
  };

  const matchedBy = (request: PolicyRequest): readonly Entry[] => {
    const matching = matcher.match(request);
    return hasExemptions ? withoutExempted(matching, request) : matching;
  };
  const askAll = (matched: readonly Entry[], request: PolicyRequest, nowMs: number) =>
    matched.map((entry) => ({ entry, rule: entry.rule, decision: entry.limiter.ask(request, nowMs) }));
  /** At least one rule does not let the request pass, or would not if it was enforced. */
  const decideSlowly = (matched: readonly Entry[], request: PolicyRequest, nowMs: number): LimitDecision => {
    const asked = askAll(matched, request, nowMs);
    const stopped = isStopped(asked);
    for (const { entry, decision } of asked) {
      count(entry, decision.kind);
      const isByThis = decision.kind === "limited" || (decision.kind === "open" && decision.opens === true);
      if (!stopped && isByThis) entry.limiter.refuse?.(request, nowMs);
    }
    const refused = worstOf(asked);
    if (refused !== undefined) {
      tell();
      return { kind: "refused", ...refused };
    }
    const tickets = asked.flatMap(({ entry, decision }) =>
      decision === PASS ? (entry.limiter.charge(request, nowMs) ?? []) : [],
    );
    tell();
    return permitted(tickets);
  };
  const permitted = (tickets: readonly Ticket[] | undefined): LimitDecision =>
    tickets === undefined || tickets.length === 0 ? PERMITTED : { kind: "permitted", permit: permitOf(tickets, now, tell) };

  return {
    decide(request: PolicyRequest): LimitDecision {
      const nowMs = now();
      if (nowMs >= dueMs) advance();
      const matched = matchedBy(request);
      for (const { limiter } of matched) if (limiter.ask(request, nowMs) !== PASS) return decideSlowly(matched, request, nowMs);
      let tickets: Ticket[] | undefined;
      for (const entry of matched) {
        count(entry, "pass");
        const ticket = entry.limiter.charge(request, nowMs);
        if (ticket === undefined) continue;
        if (tickets === undefined) tickets = [ticket];
        else tickets.push(ticket);
      }
      return permitted(tickets);
    },
    /** What each rule that matches the request says now, and who would refuse it. Changes nothing but what is due. */
    ask(request: PolicyRequest): { readonly asked: readonly AskedRule[]; readonly refused: RefusedBy | undefined } {
      const nowMs = now();
      if (nowMs >= dueMs) advance();
      const asked = askAll(matchedBy(request), request, nowMs);
      return { asked: asked.map(({ rule, decision }) => ({ rule, decision })), refused: worstOf(asked) };
    },
    update(rules: readonly LimitRule[]): void {
      const nowMs = now();
      const gone = new Map(byKey);
      entries = rules.map((rule) => {
        const key = ruleKey(rule.origin);
        const known = gone.get(key);
        const limiter = limiterOf(key, rule, nowMs, known);
        if (limiter === known?.limiter) gone.delete(key);
        limiter.breaker?.recover(rule.recovery, nowMs);
        limiter.breaker?.advance(nowMs);
        return { key, rule, match: rule.match, limiter };
      });
      for (const entry of gone.values()) {
        const breaker = storedBreaker(entry);
        if (breaker !== undefined) absent.remember(breaker);
      }
      byKey = new Map(entries.map((entry) => [entry.key, entry]));
      matcher = createMatcher(entries);
      hasExemptions = rules.some(({ limiter }) => limiter.kind === "exempt");
      applyShares();
      tell(true);
    },
    /** The shares of budgets in millionths, by `ruleKey`. */
    setShares(next: ReadonlyMap<string, number>): void {
      shares = next;
      applyShares();
    },
    wantsMore: (key: string): boolean => byKey.get(key)?.limiter.wantsMore?.(now()) === true,
    /** When `advance` has to be called, even if no request comes; Infinity: never. */
    get dueMs(): number {
      return dueMs;
    },
    /** Open breakers whose time is over become half-open. */
    advance,
    states: (): RuleState[] =>
      entries.map(({ rule, limiter }) => {
        const { opened, sinceMs, dueMs = Number.POSITIVE_INFINITY } = limiter.breaker ?? {};
        return { rule, state: limiter.state?.() ?? "Closed", sinceMs, opened, dueMs };
      }),
    figures: (): Figures[] => entries.map(({ limiter }) => limiter.figures(now())),
    /** Those of rules that are gone and may come back are first: a restart without room for all forgets the first ones. */
    openBreakers: (): readonly StoredBreaker[] => [...absent.list(), ...entries.flatMap((entry) => storedBreaker(entry) ?? [])],
  };
}

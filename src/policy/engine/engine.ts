// Decides whether a request may pass, by all limits that match it. Invariant: all limits are asked before any
// is charged, so a refused request costs nothing. State belongs to a rule with its limiter: a change of
// anything else keeps it.

import { withoutExempted } from "../exemptions.ts";
import type { BreakerState } from "../limiters/breaker-state.ts";
import { createLimiter } from "../limiters/create-limiter.ts";
import type { Decision, Limiter, Outcome, Ticket } from "../limiters/limiter.ts";
import { createMatcher, type Matcher } from "../matcher.ts";
import type { LimitRule, RuleOrigin } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";

export type Refusal = Exclude<Decision, { kind: "pass" }>;

interface RuleDecision {
  readonly rule: LimitRule;
  readonly decision: Decision;
}

export type LimitDecision =
  | ({ readonly kind: "refused"; readonly decisions: readonly RuleDecision[] } & RefusedBy)
  | { readonly kind: "permitted"; readonly decisions: readonly RuleDecision[]; readonly permit: Permit };

/** The caller must report the end of a request that passes. */
export interface Permit {
  /** The answer has begun, or will not come. Later calls do nothing. */
  settle(outcome: Outcome): void;
  /** The request is over. If it is not settled, its outcome says nothing. Later calls do nothing. */
  release(): void;
}

export interface RefusedBy {
  readonly rule: LimitRule;
  readonly refusal: Refusal;
}

export interface StoredBreaker {
  readonly key: string;
  readonly state: BreakerState;
}

export type Engine = ReturnType<typeof createEngine>;

interface EngineOptions {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  readonly stored?: readonly StoredBreaker[];
  readonly changed?: () => void;
  /** Called when the pod begins to want a larger share of a budget. */
  readonly wanted?: () => void;
}

interface Entry {
  readonly key: string;
  readonly rule: LimitRule;
  readonly match: LimitRule["match"];
  readonly limiter: Limiter;
}

const EMPTY_PERMIT: Permit = { settle: () => {}, release: () => {} };

export function createEngine({ now, stored = [], changed = () => {}, wanted = () => {} }: EngineOptions) {
  const storedStates = new Map(stored.map(({ key, state }) => [key, state]));
  let entries: readonly Entry[] = [];
  let matcher: Matcher<Entry> = createMatcher(entries);

  const entryOf = (rule: LimitRule, known: Entry | undefined): Entry => {
    const key = keyOf(rule);
    const { limiter: spec, recovery } = rule;
    const limiter =
      known?.limiter ?? createLimiter({ spec, startMs: now(), recovery, before: storedStates.get(key), changed, wanted });
    limiter.recover?.(rule.recovery, now());
    return { key, rule, match: rule.match, limiter };
  };
  let shares: ReadonlyMap<string, number> = new Map();
  const applyShares = () => {
    for (const { rule, limiter } of entries) limiter.setShare?.(shares.get(shareKeyOf(rule.origin)) ?? 0, now());
  };
  return {
    decide(request: PolicyRequest): LimitDecision {
      const nowMs = now();
      const asked = withoutExempted(matcher.match(request), request).map((entry) => ({
        entry,
        decision: entry.limiter.ask(request, nowMs),
      }));
      if (asked.length === 0) return { kind: "permitted", decisions: [], permit: EMPTY_PERMIT };
      const decisions = asked.map(({ entry, decision }) => ({ rule: entry.rule, decision }));
      const refusing = asked.filter(({ decision }) => decision.kind !== "pass");
      // A request that a rule refuses in any case must not open the breaker of another rule.
      const isStopped = refusing.some(({ entry: { rule, limiter } }) => rule.mode !== "Shadow" && limiter.state() === "Opened");
      if (!isStopped) for (const { entry } of refusing) entry.limiter.refuse?.(request, nowMs);
      const refused = worstOf(decisions);
      if (refused !== undefined) return { kind: "refused", decisions, ...refused };
      const tickets = asked.flatMap(({ entry, decision }) =>
        decision.kind === "pass" ? (entry.limiter.charge(request, nowMs) ?? []) : [],
      );
      return { kind: "permitted", decisions, permit: permitOf(tickets, now) };
    },
    update(rules: readonly LimitRule[]) {
      const known = new Map(entries.map((entry) => [entry.key, entry]));
      entries = rules.map((rule) => entryOf(rule, known.get(keyOf(rule))));
      matcher = createMatcher(entries);
      applyShares();
      storedStates.clear();
      changed();
    },
    /** The shares of budgets in millionths, by `shareKeyOf`. */
    setShares(next: ReadonlyMap<string, number>): void {
      shares = next;
      applyShares();
    },
    wantsMore(key: string): boolean {
      return entries.some(({ rule, limiter }) => shareKeyOf(rule.origin) === key && limiter.wantsMore?.(now()) === true);
    },
    states: () => entries.map(({ rule, limiter }) => ({ rule, state: limiter.state(), breaker: limiter.stored?.() })),
    openBreakers: (): readonly StoredBreaker[] =>
      entries.flatMap(({ key, limiter }) => {
        const state = limiter.stored?.();
        return state === undefined || state.kind === "closed" ? [] : [{ key, state }];
      }),
  };
}

export function shareKeyOf({ uid, rule }: Pick<RuleOrigin, "uid" | "rule">): string {
  return `${uid}/${rule}`;
}

function keyOf({ origin, limiter }: LimitRule): string {
  return JSON.stringify([origin.uid, origin.rule, limiter]);
}

/** The refusal that lasts longest. Rules in the shadow refuse nothing. */
function worstOf(decisions: readonly RuleDecision[]): RefusedBy | undefined {
  let worst: RefusedBy | undefined;
  for (const { rule, decision } of decisions) {
    if (decision.kind === "pass" || rule.mode === "Shadow") continue;
    if (worst === undefined || decision.waitMs > worst.refusal.waitMs) worst = { rule, refusal: decision };
  }
  return worst;
}

function permitOf(tickets: readonly Ticket[], now: () => number): Permit {
  if (tickets.length === 0) return EMPTY_PERMIT;
  let isSettled = false;
  let isReleased = false;
  const settle = (outcome: Outcome) => {
    if (isSettled) return;
    isSettled = true;
    const nowMs = now();
    for (const ticket of tickets) ticket.settle?.(outcome, nowMs);
  };
  return {
    settle,
    release() {
      if (isReleased) return;
      isReleased = true;
      settle({ kind: "abandoned", afterMs: 0 });
      for (const ticket of tickets) ticket.release?.();
    },
  };
}

// Decides whether a request may pass, by all rules that match it. Pure but for its state. Invariant: all
// rules are asked before any is charged, so a refused request costs nothing. State belongs to a rule with its
// limiter: a change of anything else keeps it. One engine for each proxy; called by the layer `limit` and by
// the egress proxy.
import { createBackoffLimiter } from "../limiters/backoff.ts";
import { createBreaker } from "../limiters/breaker.ts";
import type { BreakerState } from "../limiters/breaker-state.ts";
import { DENY } from "../limiters/deny.ts";
import { createInFlightLimiter } from "../limiters/in-flight.ts";
import type { Limiter, LimiterState, Outcome, Ticket, Verdict } from "../limiters/limiter.ts";
import { createBucketLimiter } from "../limiters/token-bucket.ts";
import { createMatcher, type Matcher } from "../matcher.ts";
import type { LimitRule } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";

export type Refusal = Exclude<Verdict, { kind: "pass" }>;

/** A rule's decision about one request. */
export interface RuleDecision {
  readonly rule: LimitRule;
  readonly verdict: Verdict;
}

export type Admission =
  | ({ readonly kind: "refused"; readonly decisions: readonly RuleDecision[] } & RefusedBy)
  | { readonly kind: "admitted"; readonly decisions: readonly RuleDecision[]; readonly passage: Passage };

/** A request that passes. Its end has to be told. */
export interface Passage {
  /** The answer has begun, or will not come. Later calls do nothing. */
  settle(outcome: Outcome): void;
  /** The request is over; without an answer it was abandoned. Later calls do nothing. */
  release(): void;
}

/** The rule whose refusal lasts longest. */
export interface RefusedBy {
  readonly rule: LimitRule;
  readonly refusal: Refusal;
}

/** A breaker that is not closed, as it is stored. */
export interface StoredBreaker {
  readonly key: string;
  readonly state: BreakerState;
}

export interface Engine {
  admit(request: PolicyRequest): Admission;
  /** Enforces these rules from now on. */
  update(rules: readonly LimitRule[]): void;
  states(): readonly { readonly rule: LimitRule; readonly state: LimiterState; readonly breaker: BreakerState | undefined }[];
  /** The breakers that are not closed. */
  openBreakers(): readonly StoredBreaker[];
}

export interface EngineOptions {
  /** Milliseconds since the epoch, of a clock that never goes back. */
  readonly now: () => number;
  readonly stored?: readonly StoredBreaker[];
  /** Called when a breaker opens, half opens or closes. */
  readonly changed?: () => void;
}

/** A rule in force. */
interface Entry {
  readonly key: string;
  readonly rule: LimitRule;
  readonly match: LimitRule["match"];
  readonly limiter: Limiter;
}

const NOTHING: Passage = { settle: () => {}, release: () => {} };

export function createEngine({ now, stored = [], changed = () => {} }: EngineOptions): Engine {
  const before = new Map(stored.map(({ key, state }) => [key, state]));
  let entries: readonly Entry[] = [];
  let matcher: Matcher<Entry> = createMatcher(entries);

  const entryOf = (rule: LimitRule, known: Entry | undefined): Entry => {
    const key = keyOf(rule);
    const limiter = known?.limiter ?? createLimiter(rule, now(), before.get(key), changed);
    limiter.recover?.(rule.recovery, now());
    return { key, rule, match: rule.match, limiter };
  };
  return {
    admit(request) {
      const nowMs = now();
      const asked = matcher.match(request).map((entry) => ({ entry, verdict: entry.limiter.ask(request, nowMs) }));
      if (asked.length === 0) return { kind: "admitted", decisions: [], passage: NOTHING };
      const decisions = asked.map(({ entry, verdict }) => ({ rule: entry.rule, verdict }));
      const refusing = asked.filter(({ verdict }) => verdict.kind !== "pass");
      // What a rule that refuses everything keeps from the server is no reason to open another breaker.
      const isStopped = refusing.some(({ entry: { rule, limiter } }) => rule.mode !== "Shadow" && limiter.state() === "Opened");
      if (!isStopped) for (const { entry } of refusing) entry.limiter.refuse?.(request, nowMs);
      const refused = worstOf(decisions);
      if (refused !== undefined) return { kind: "refused", decisions, ...refused };
      const tickets = asked.flatMap(({ entry, verdict }) =>
        verdict.kind === "pass" ? (entry.limiter.charge(request, nowMs) ?? []) : [],
      );
      return { kind: "admitted", decisions, passage: passageOf(tickets, now) };
    },
    update(rules) {
      const known = new Map(entries.map((entry) => [entry.key, entry]));
      entries = rules.map((rule) => entryOf(rule, known.get(keyOf(rule))));
      matcher = createMatcher(entries);
      before.clear();
      changed();
    },
    states: () => entries.map(({ rule, limiter }) => ({ rule, state: limiter.state(), breaker: limiter.stored?.() })),
    openBreakers: () =>
      entries.flatMap(({ key, limiter }) => {
        const state = limiter.stored?.();
        return state === undefined || state.kind === "closed" ? [] : [{ key, state }];
      }),
  };
}

function keyOf({ origin, limiter }: LimitRule): string {
  return JSON.stringify([origin.uid, origin.rule, limiter]);
}

function createLimiter(
  { limiter: spec, recovery }: LimitRule,
  startMs: number,
  before: BreakerState | undefined,
  changed: () => void,
): Limiter {
  switch (spec.kind) {
    case "deny":
      return DENY;
    case "bucket":
      return createBucketLimiter(spec, startMs);
    case "in-flight":
      return createInFlightLimiter(spec.max);
    case "backoff":
      return createBackoffLimiter(spec);
    case "breaker":
      return createBreaker({ spec, startMs, recovery, before, changed });
    default:
      return spec satisfies never;
  }
}

/** The refusal that lasts longest, of the rules that are enforced. */
function worstOf(decisions: readonly RuleDecision[]): RefusedBy | undefined {
  let worst: RefusedBy | undefined;
  for (const { rule, verdict } of decisions) {
    if (verdict.kind === "pass" || rule.mode === "Shadow") continue;
    if (worst === undefined || verdict.waitMs > worst.refusal.waitMs) worst = { rule, refusal: verdict };
  }
  return worst;
}

function passageOf(tickets: readonly Ticket[], now: () => number): Passage {
  if (tickets.length === 0) return NOTHING;
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
      // Whoever gives up without an answer has learned nothing of the server.
      settle({ kind: "abandoned" });
      for (const ticket of tickets) ticket.release?.();
    },
  };
}

// The breakers that are not closed: those of rules that are gone and may come back, and the changes that nobody has been told yet.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Opened } from "../limiters/breaker-state.ts";
import type { Limiter, LimiterState, MoveReason } from "../limiters/limiter.ts";
import { type LimitRule, ruleKey } from "../policy.ts";

/** A breaker that is not closed. */
export interface StoredBreaker extends Opened {
  /** Of the object. */
  readonly uid: string;
  readonly rule: string;
}

/** A breaker has opened, half opened or closed. */
export interface Transition {
  readonly rule: LimitRule;
  readonly to: LimiterState;
  readonly reason: MoveReason;
  /** Why it had opened; "" if it has closed. */
  readonly figure: string;
}

/** Open breakers whose rules are gone: they may come back, since a disabled object has no rules. */
export const MAX_ABSENT = 1_024;

interface Limited {
  readonly rule: LimitRule;
  readonly limiter: Limiter;
}

export function storedBreaker({ rule: { origin }, limiter }: Limited): StoredBreaker | undefined {
  const opened = limiter.breaker?.opened;
  return opened && { uid: origin.uid, rule: origin.rule, ...opened };
}

/** The breakers of rules that are gone. @param forgotten called for one that is forgotten for lack of room */
export function createAbsentBreakers(forgotten: ((breaker: StoredBreaker) => void) | undefined) {
  const absent = new BoundedMap<string, StoredBreaker>(MAX_ABSENT);
  return {
    remember(breaker: StoredBreaker): void {
      const key = ruleKey(breaker);
      const [oldest] = absent.values();
      if (absent.size === MAX_ABSENT && !absent.has(key) && oldest !== undefined) forgotten?.(oldest);
      absent.set(key, breaker);
    },
    take(key: string): StoredBreaker | undefined {
      const breaker = absent.get(key);
      if (breaker !== undefined) absent.delete(key);
      return breaker;
    },
    list: (): readonly StoredBreaker[] => [...absent.values()],
  };
}

/** What has changed and is not told yet: a request may open several breakers. */
export function createTransitions(ruleOf: (key: string) => Limited | undefined) {
  let moves: { readonly key: string; readonly limiter: Limiter; readonly move: Omit<Transition, "rule"> }[] = [];
  return {
    get isEmpty(): boolean {
      return moves.length === 0;
    },
    add(key: string, limiter: Limiter, move: Omit<Transition, "rule">): void {
      moves.push({ key, limiter, move });
    },
    take(): readonly Transition[] {
      const told = moves;
      moves = [];
      return told.flatMap(({ key, limiter, move }) => {
        const entry = ruleOf(key);
        // A late outcome may move the breaker of a rule that has gone, even if the rule is back with another one.
        return entry?.limiter === limiter ? [{ rule: entry.rule, ...move }] : [];
      });
    },
  };
}

// Draws the faults of a request. Invariants: delay and abort are drawn once for each rule and independently
// of each other, as Envoy's fault filter does; an abort is drawn when the delay is over, by the rules that
// are in effect then.
import type { Random } from "../../base/clock.ts";
import type { Matcher } from "../matcher.ts";
import type { FaultRule, TimeWindow } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";

/** How long a fault has delayed a request, for the access log. */
export interface Waited {
  readonly seconds: number;
  readonly rule: string;
}

export interface Delay {
  /** The delays of all rules add up. */
  readonly ms: number;
  /** The first of them. */
  readonly rule: FaultRule;
}

export interface Abort {
  readonly status: number;
  readonly rule: FaultRule;
}

export interface FaultDeps {
  readonly matcher: Matcher<FaultRule>;
  readonly random: Random;
  /** Called with every rule that fires, including those in the shadow. */
  readonly fired: (rule: FaultRule, what: "delay" | "abort") => void;
}

/** A longer delay would look like a dead server, and hold memory. */
const MAX_DELAY_MS = 30_000;

/** @param nowMs milliseconds since the epoch */
export function drawDelay(request: PolicyRequest, nowMs: number, deps: FaultDeps): Delay | undefined {
  let first: FaultRule | undefined;
  let ms = 0;
  for (const rule of firing("delay", request, nowMs, deps)) {
    first ??= rule;
    ms += rule.delay?.ms ?? 0;
  }
  return first && { ms: Math.min(MAX_DELAY_MS, ms), rule: first };
}

/** The answer of the first rule that aborts. @param nowMs milliseconds since the epoch */
export function drawAbort(request: PolicyRequest, nowMs: number, deps: FaultDeps): Abort | undefined {
  const [rule] = firing("abort", request, nowMs, deps);
  return rule?.abort && { status: rule.abort.status, rule };
}

/** The enforced rules that fire. */
function firing(what: "delay" | "abort", request: PolicyRequest, nowMs: number, { matcher, random, fired }: FaultDeps) {
  return matcher.match(request).filter((rule) => {
    if (!isInEffect(rule, nowMs) || !isHit(rule[what], random)) return false;
    fired(rule, what);
    return rule.mode === "Enforce";
  });
}

/** @param nowMs milliseconds since the epoch */
export function isInEffect({ effective, untilMs = Number.POSITIVE_INFINITY }: FaultRule, nowMs: number): boolean {
  return nowMs < untilMs && (effective === undefined || isInWindow(effective, nowMs));
}

function isHit(part: { readonly percent: number } | undefined, random: Random): boolean {
  return part !== undefined && random() * 100 < part.percent;
}

const DAY_SECONDS = 86_400;

/** A window that ends on the next day belongs to the day on which it started. */
export function isInWindow({ startSecond, endSecond, ...days }: TimeWindow, nowMs: number): boolean {
  const second = Math.floor(nowMs / 1_000) % DAY_SECONDS;
  if (startSecond < endSecond) return second >= startSecond && second < endSecond && isDay(days, nowMs);
  if (second >= startSecond) return isDay(days, nowMs);
  return second < endSecond && isDay(days, nowMs - DAY_SECONDS * 1_000);
}

type Days = Pick<TimeWindow, "daysOfWeek" | "daysOfMonth" | "months">;

function isDay({ daysOfWeek, daysOfMonth, months }: Days, ms: number): boolean {
  const date = new Date(ms);
  const has = (list: readonly number[], value: number) => list.length === 0 || list.includes(value);
  return has(daysOfWeek, date.getUTCDay()) && has(daysOfMonth, date.getUTCDate()) && has(months, date.getUTCMonth() + 1);
}

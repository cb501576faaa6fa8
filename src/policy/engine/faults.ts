// Draws the faults of a request. Invariant: delay and abort are drawn once for each rule and independently of
// each other, as Envoy's fault filter does.
import type { Random } from "../../base/clock.ts";
import type { Matcher } from "../matcher.ts";
import type { FaultRule, TimeWindow } from "../policy.ts";
import type { PolicyRequest } from "../policy-request.ts";

export interface Fault {
  /** The delays of all rules add up. */
  readonly delayMs: number;
  /** The answer of the first rule that aborts. */
  readonly abort?: { readonly status: number; readonly rule: FaultRule } | undefined;
  /** Every rule that fires, including those in the shadow. */
  readonly fired: readonly { readonly rule: FaultRule; readonly what: "delay" | "abort" }[];
}

export const NO_FAULT: Fault = { delayMs: 0, fired: [] };
/** A longer delay would look like a dead server, and hold memory. */
const MAX_DELAY_MS = 30_000;

/** @param nowMs milliseconds since the epoch */
export function drawFault(matcher: Matcher<FaultRule>, request: PolicyRequest, nowMs: number, random: Random): Fault {
  const rules = matcher.match(request).filter((rule) => isInEffect(rule, nowMs));
  if (rules.length === 0) return NO_FAULT;
  const drawn = rules.map((rule) => ({ rule, delays: isHit(rule.delay, random), aborts: isHit(rule.abort, random) }));
  const enforced = drawn.filter(({ rule }) => rule.mode === "Enforce");
  const delayMs = enforced.reduce((sum, { rule, delays }) => sum + (delays ? (rule.delay?.ms ?? 0) : 0), 0);
  const first = enforced.find(({ aborts }) => aborts)?.rule;
  return {
    delayMs: Math.min(MAX_DELAY_MS, delayMs),
    abort: first?.abort && { status: first.abort.status, rule: first },
    fired: drawn.flatMap(({ rule, delays, aborts }) => [
      ...(delays ? [{ rule, what: "delay" as const }] : []),
      ...(aborts ? [{ rule, what: "abort" as const }] : []),
    ]),
  };
}

function isInEffect({ effective, untilMs = Number.POSITIVE_INFINITY }: FaultRule, nowMs: number): boolean {
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

// When a fault rule is in effect. Pure. Invariant: a window that ends on the next day belongs to the day on
// which it started.
import type { TimeWindow } from "./policy.ts";

const DAY_SECONDS = 86_400;

/** @param nowMs milliseconds since the epoch */
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

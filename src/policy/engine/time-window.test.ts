import { expect, it } from "vitest";
import type { TimeWindow } from "../policy.ts";
import { isInWindow } from "./faults.ts";

const window = (start: number, end: number, days: Partial<TimeWindow> = {}): TimeWindow => ({
  startSecond: start * 3_600,
  endSecond: end * 3_600,
  daysOfWeek: [],
  daysOfMonth: [],
  months: [],
  ...days,
});
const SUNDAY = [0];
const SATURDAY = [6];

it.each<[string, TimeWindow, string, boolean]>([
  ["by day", window(9, 17), "2026-11-22T09:00:00Z", true],
  ["by day", window(9, 17), "2026-11-22T08:59:59Z", false],
  ["at its end", window(9, 17), "2026-11-22T17:00:00Z", false],
  ["over night, in the evening", window(22, 6), "2026-11-22T23:00:00Z", true],
  ["over night, in the morning", window(22, 6), "2026-11-22T05:59:59Z", true],
  ["over night, at noon", window(22, 6), "2026-11-22T12:00:00Z", false],
  ["over night, on the day after its Saturday", window(22, 6, { daysOfWeek: SATURDAY }), "2026-11-22T05:00:00Z", true],
  ["over night, in the morning of its Sunday", window(22, 6, { daysOfWeek: SUNDAY }), "2026-11-22T05:00:00Z", false],
  ["over night, in the evening of its Sunday", window(22, 6, { daysOfWeek: SUNDAY }), "2026-11-22T22:00:00Z", true],
  ["all day", window(0, 0, { daysOfWeek: SUNDAY }), "2026-11-22T12:00:00Z", true],
  ["on another day", window(0, 0, { daysOfWeek: SUNDAY }), "2026-11-23T12:00:00Z", false],
  ["in its month", window(0, 0, { months: [11] }), "2026-11-22T12:00:00Z", true],
  ["in another month", window(0, 0, { months: [1] }), "2026-11-22T12:00:00Z", false],
  ["on its day of the month", window(0, 0, { daysOfMonth: [22] }), "2026-11-22T12:00:00Z", true],
  ["over the end of a month", window(22, 6, { daysOfMonth: [30] }), "2026-12-01T01:00:00Z", true],
])("a window %s", (_name, when, at, expected) => {
  expect(isInWindow(when, Date.parse(at))).toBe(expected);
});

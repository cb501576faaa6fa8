import { expect, test } from "vitest";
import { createSeries } from "./series.ts";

test("the percentiles count calls that failed, with the time until they did", () => {
  const series = createSeries(0);
  for (let at = 0; at < 98; at++) series.add(at, at + 1);
  series.add(98, 5_098, "timeout");
  series.add(99, 5_099, "timeout");
  expect(series.summary()).toMatchObject({ count: 100, failed: 2, p50Ms: 1, p99Ms: 5_000, maxMs: 5_000, failure: "timeout" });
});

test("the longest gap is the longest time without a success, also at the end", () => {
  const series = createSeries(0);
  series.add(0, 10);
  series.add(100, 4_000);
  expect(series.summary().longestGapMs).toBe(3_990);
  series.add(4_000, 12_000, "503");
  expect(series.summary().longestGapMs).toBe(8_000);
});

test("a series without a call has no times", () => {
  expect(createSeries(0).summary()).toMatchObject({ count: 0, failed: 0, p99Ms: 0, longestGapMs: 0, failure: "" });
});

test("a pause is no gap, and hides none before it", () => {
  const series = createSeries(0);
  series.add(0, 10);
  series.add(10, 2_010, "timeout");
  series.resume(60_000);
  series.add(60_000, 60_010);
  expect(series.summary().longestGapMs).toBe(2_000);
});

import { describe, expect, it } from "vitest";
import { threadCpuMs } from "../../test/support/thread-cpu.ts";
import { parseDuration } from "../base/clock.ts";
import { durationSchema } from "./duration.ts";

describe("parseDuration", () => {
  it.each([
    ["300ms", 300],
    ["1m30s", 90_000],
    ["1.5h", 5_400_000],
    [".5s", 500],
    ["2.s", 2_000],
    ["1h2m3s4ms5us", 3_723_004.005],
    ["0s", 0],
  ])("reads %s", (text, ms) => expect(parseDuration(text)).toBeCloseTo(ms, 6));

  it.each(["", "10", "s", "1 s", "-1s", "1d", "1s ", ".s", "1..5s", "1S"])("refuses %j", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );

  it("reads a long text in linear time", () => {
    const startedMs = threadCpuMs();
    expect(parseDuration(`${"1s".repeat(100_000)}!`)).toBeUndefined();
    expect(threadCpuMs() - startedMs).toBeLessThan(1_000);
  });
});

describe("durationSchema", () => {
  const problems = (text: string) =>
    durationSchema("1s", "1h")
      .safeParse(text)
      .error?.issues.map(({ message }) => message);

  it("accepts its bounds and nothing beyond", () => {
    expect([problems("1000ms"), problems("60m")]).toEqual([undefined, undefined]);
    expect([problems("999ms"), problems("1h1ms")]).toEqual([["must be from 1s to 1h"], ["must be from 1s to 1h"]]);
  });

  it("names the form once for any other text", () => {
    expect(problems("soon")).toEqual(['must be a duration such as "300ms", "10s" or "1m30s"']);
  });
});

import { expect, it } from "vitest";
import { ageText, countSteps, nextStepMs } from "./facts.ts";

const SINCE = "2026-01-01T00:00:00Z";
const after = (seconds: number) => new Date(Date.parse(SINCE) + seconds * 1000).toISOString();

it("the text of an age changes in steps, from ten seconds on", () => {
  expect([0, 9.9, 10, 29, 41, 60, 299, 300, 700, 3_600, 90_000].map((seconds) => ageText(SINCE, after(seconds)))).toEqual([
    "",
    "",
    "over 10 s",
    "over 10 s",
    "over 30 s",
    "over 1 min",
    "over 1 min",
    "over 5 min",
    "over 10 min",
    "over 1 h",
    "over 1 day",
  ]);
});

it("at each next step the text changes, and after the last step there is none", () => {
  const texts: string[] = [];
  let seconds = 0.25;
  for (;;) {
    texts.push(ageText(SINCE, after(seconds)));
    const ms = nextStepMs(SINCE, after(seconds));
    if (ms === undefined) break;
    seconds += ms / 1000;
  }
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.at(-1)).toBe("over 1 day");
});

it("a beginning in the future, by another machine's clock, has no age text", () => {
  expect(ageText(after(30), SINCE)).toBe("");
  expect(nextStepMs(after(30), SINCE)).toBe(10_000);
});

it("a growing count changes in steps too", () => {
  expect([0, 1, 2, 3, 9, 12, 4_000].map(countSteps)).toEqual([
    "0",
    "1",
    "2",
    "at least 3",
    "at least 3",
    "at least 10",
    "at least 1000",
  ]);
});

import { expect, it } from "vitest";
import { matchesIn } from "./expression-matcher.ts";
import { startMatching } from "./match-job.ts";

it("answers for each expression and name, in any number of slices", () => {
  const [expressions, names] = [
    ["^a", "b$"],
    ["a", "b", "ab"],
  ];
  let now = 0;
  const run = startMatching(expressions, names, () => now++);
  let slices = 0;
  for (; !run.isComplete; slices++) run.continue(2);
  expect(slices).toBe(6);
  const matches = matchesIn(expressions, names, run.answers);
  const answers = expressions.map((expression) => names.filter((name) => matches(expression, name)));
  expect(answers).toEqual([
    ["a", "ab"],
    ["b", "ab"],
  ]);
});

it("takes one bit for each answer, since 4,096 expressions and 10,000 names would take 41 MB for each job otherwise", () => {
  const names = Array.from({ length: 1_001 }, (_, i) => `n${i}`);
  const run = startMatching(["0$", "1$", "2$"], names, () => 0);
  run.continue(1);
  expect(run.answers.length).toBe(Math.ceil((3 * 1_001) / 8));
  const matches = matchesIn(["0$", "1$", "2$"], names, run.answers);
  expect(["0$", "1$", "2$"].map((each) => names.filter((name) => matches(each, name)).length)).toEqual([101, 100, 100]);
});

it("counts the time that it takes", () => {
  let now = 0;
  const run = startMatching(["a"], ["a", "b", "c"], () => (now += 10));
  run.continue(25);
  expect([run.isComplete, run.spentMs]).toEqual([false, 40]);
});

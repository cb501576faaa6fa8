import { expect, it } from "vitest";
import { createFairBudget } from "./fair-budget.ts";

const takeAll = (budget: ReturnType<typeof createFairBudget>, client: string) => {
  let taken = 0;
  while (budget.take(client, 1)) taken++;
  return taken;
};

it("one client gets half at most", () => {
  expect(takeAll(createFairBudget(100), "a")).toBe(50);
});

it("clients that take all they can leave the next one a part", () => {
  const budget = createFairBudget(1_000);
  for (const client of ["a", "b", "c", "d"]) takeAll(budget, client);
  expect(takeAll(budget, "e")).toBeGreaterThan(25);
});

it("what is given back can be taken again, by anybody", () => {
  const budget = createFairBudget(100);
  for (let round = 0; round < 10; round++) {
    const taken = takeAll(budget, "a");
    expect(taken).toBe(50);
    budget.give("a", taken);
  }
  expect(takeAll(budget, "b")).toBe(50);
});

it("a refused client takes nothing", () => {
  const budget = createFairBudget(100);
  expect(budget.take("a", 51)).toBe(false);
  expect(budget.take("a", 50)).toBe(true);
});

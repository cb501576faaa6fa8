import { expect, it } from "vitest";
import { Growth, type GrowthOptions } from "./growth.ts";

const options = (growOn: GrowthOptions["growOn"]): GrowthOptions => ({ base: 2, max: 5, patienceMs: 100, growOn });

type Step = ["leave", number] | ["grow", number] | ["enter", number, number];

// Steps as they happen, then when one more may run for a head that has waited since then.
it.each<[string, GrowthOptions["growOn"], Step[], number, number | undefined]>([
  ["after the head's patience", "wait", [], 50, 150],
  ["whoever leaves meanwhile", "wait", [["leave", 120]], 50, 150],
  ["and again as long after the one before", "wait", [["grow", 150]], 60, 250],
  ["at a standstill", "standstill", [], 50, 150],
  ["later, if somebody left", "standstill", [["leave", 120]], 50, 220],
  [
    "once the head itself has waited for a second, though others leave all the time",
    "standstill",
    [
      ["leave", 900],
      ["leave", 980],
    ],
    0,
    1_000,
  ],
  [
    "and then a second after the one before",
    "standstill",
    [
      ["grow", 1_000],
      ["leave", 1_990],
    ],
    0,
    2_000,
  ],
  [
    "never beyond the most",
    "wait",
    [
      ["grow", 1],
      ["grow", 2],
      ["grow", 3],
    ],
    0,
    undefined,
  ],
])("one more may run %s (%s)", (_name, growOn, steps, headSinceMs, expected) => {
  const growth = new Growth(options(growOn));
  for (const step of steps) apply(growth, step);
  expect(growth.growAt(headSinceMs)).toBe(expected);
});

it.each<[string, Step[], number]>([
  ["grows by one", [["grow", 0]], 3],
  [
    "stays while it is needed",
    [
      ["grow", 0],
      ["enter", 3, 29_000],
      ["enter", 1, 58_000],
    ],
    3,
  ],
  [
    "goes back after 30 s without need",
    [
      ["grow", 0],
      ["enter", 3, 29_000],
      ["enter", 1, 59_001],
    ],
    2,
  ],
])("the limit %s", (_name, steps, expected) => {
  const growth = new Growth(options("wait"));
  for (const step of steps) apply(growth, step);
  expect([growth.limit, growth.isGrown]).toEqual([expected, expected > 2]);
});

function apply(growth: Growth, step: Step): void {
  if (step[0] === "leave") growth.onLeave(step[1]);
  else if (step[0] === "grow") growth.onGrow(step[1]);
  else growth.onEnter(step[1], step[2]);
}

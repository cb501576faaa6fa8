// The judge finds each kind of wrong answer.
import { expect, it } from "vitest";
import { answeredTwice, readReviews, wrongAnswers } from "./reviews.ts";

const MOVES = [
  { to: "", fromMs: 0, overMs: 0 },
  { to: "v2", fromMs: 100, overMs: 200 },
  { to: "", fromMs: 300, overMs: 400 },
];
const answer = (subset: string, fromMs: number, atMs: number) => ({ subset, fromMs, atMs, pod: "p" });

it.each([
  ["by the owner before a move", answer("", 50, 90), true],
  ["by another subset before a move", answer("v2", 50, 90), false],
  ["by the old owner during a move", answer("", 150, 160), true],
  ["by the new owner during a move", answer("v2", 150, 220), true],
  ["by the old owner to a request that began during the move", answer("", 190, 210), true],
  ["by the old owner to a request that began after the move", answer("", 210, 220), false],
  ["by the new owner after the move", answer("v2", 210, 220), true],
  ["by the next owner before its move", answer("", 250, 290), false],
  ["by the next owner during its move", answer("", 250, 410), true],
  ["by a stranger during a move", answer("v3", 150, 160), false],
])("judges an answer %s", (_, review, isRight) => {
  expect(wrongAnswers(MOVES, [review]).length === 0).toBe(isRight);
});

it("finds reviews among other lines, and those that were answered twice", () => {
  const log =
    'started\n{"review":"default","uid":"a","atMs":1}\n{"level":"info"}\n{"review":"validate","uid":"b","atMs":2}\n{"review":"de';
  const reviews = readReviews("p", log);
  expect(reviews.map(({ review, pod }) => [review, pod])).toEqual([
    ["default", "p"],
    ["validate", "p"],
  ]);
  expect(answeredTwice([...reviews, ...readReviews("q", log.split("\n").slice(0, 2).join("\n"))])).toEqual(["a"]);
});

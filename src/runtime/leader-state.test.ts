import { expect, test } from "vitest";
import { initialLeaderState, type LeaderInput, type LeaderState, nextLeaderState } from "./leader-state.ts";

const held = (untilMs: number, nowMs: number): LeaderInput => ({ kind: "held", epoch: 3, untilMs, nowMs });
const notHeld = (nowMs: number, isTaken = false): LeaderInput => ({ kind: "not-held", isTaken, nowMs });
const leading = (untilMs: number): LeaderState => ({ kind: "leading", epoch: 3, untilMs });
const after = (state: LeaderState, ...inputs: LeaderInput[]) => inputs.reduce(nextLeaderState, state);

test("a contender leads once it holds the lease", () => {
  expect(after(initialLeaderState, notHeld(0, true))).toEqual({ kind: "contending" });
  expect(after(initialLeaderState, held(10, 0))).toEqual(leading(10));
});

test("a renewal in time moves the deadline; a late one loses the leadership", () => {
  expect(after(leading(10), held(15, 9))).toEqual(leading(15));
  expect(after(leading(10), held(15, 10))).toEqual({ kind: "lost" });
});

test("a failed renewal loses the leadership at the deadline, or at once if another process holds the lease", () => {
  expect(after(leading(10), notHeld(9))).toEqual(leading(10));
  expect(after(leading(10), notHeld(10))).toEqual({ kind: "lost" });
  expect(after(leading(10), notHeld(5, true))).toEqual({ kind: "lost" });
});

test("the lease is released after the work has ended, unless a part of the work may still run", () => {
  expect(after(leading(10), { kind: "work-ended", isDrained: true })).toEqual({ kind: "releasing" });
  expect(after(leading(10), { kind: "work-ended", isDrained: false })).toEqual({ kind: "resting" });
  expect(after({ kind: "lost" }, { kind: "work-ended", isDrained: true })).toEqual({ kind: "resting" });
});

test("a stop waits for the end of the work and for the release", () => {
  for (const state of [leading(10), { kind: "lost" }, { kind: "releasing" }] as const)
    expect(after(state, { kind: "stop" })).toEqual(state);
  for (const kind of ["contending", "resting"] as const) expect(after({ kind }, { kind: "stop" })).toEqual({ kind: "stopped" });
  expect(after({ kind: "releasing" }, { kind: "released" }, { kind: "stop" })).toEqual({ kind: "stopped" });
});

test("a process that has led waits, then contends again", () => {
  expect(after({ kind: "resting" }, { kind: "rested" })).toEqual({ kind: "contending" });
  expect(after({ kind: "stopped" }, { kind: "rested" }, held(10, 0))).toEqual({ kind: "stopped" });
});

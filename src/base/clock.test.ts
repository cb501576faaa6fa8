import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createDeadline, systemClock } from "./clock.ts";

test("a deadline ends once after its time and one turn of the loop", async () => {
  const clock = createFakeClock();
  let over = 0;
  createDeadline(clock, () => over++).set(2_000);
  await clock.advance(2_000);
  expect(over).toBe(0);
  await clock.advance(60_000);
  expect(over).toBe(1);
});

test("what is read in the turn after a blocked loop clears the deadline", async () => {
  const clock = createFakeClock();
  let over = 0;
  const deadline = createDeadline(clock, () => over++);
  deadline.set(2_000);
  await clock.advance(2_001);
  deadline.clear();
  await clock.advance(60_000);
  expect([over, clock.pending]).toEqual([0, 0]);
});

test("a deadline that is set again begins again", async () => {
  const clock = createFakeClock();
  let over = 0;
  const deadline = createDeadline(clock, () => over++);
  deadline.set(2_000);
  await clock.advance(1_900);
  deadline.set(2_000);
  await clock.advance(1_900);
  expect(over).toBe(0);
  await clock.advance(200);
  expect(over).toBe(1);
});

test.each([2 ** 31, 2 ** 53, Number.POSITIVE_INFINITY])("a timer of %d ms waits, and does not fire at once", async (delayMs) => {
  let isOver = false;
  const timer = systemClock.after(delayMs, () => {
    isOver = true;
  });
  await new Promise<void>((resolve) => systemClock.after(20, resolve));
  expect(isOver).toBe(false);
  timer.cancel();
});

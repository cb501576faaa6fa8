import { expect, it } from "vitest";
import { systemClock } from "./clock.ts";

it.each([2 ** 31, 2 ** 53, Number.POSITIVE_INFINITY])("a timer of %d ms waits, and does not fire at once", async (delayMs) => {
  let isOver = false;
  const timer = systemClock.after(delayMs, () => {
    isOver = true;
  });
  await new Promise<void>((resolve) => systemClock.after(20, resolve));
  expect(isOver).toBe(false);
  timer.cancel();
});

import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createReadLimit } from "./read-limit.ts";

const app = (name: string) => ({ namespace: "ops", name });

it("a flood of reviews for a thousand apps causes at most 16 reads at once and 20 a second, after a burst of 40", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  let [reads, running, most] = [0, 0, 0];
  const read = async () => {
    reads++;
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    running--;
  };
  let refused = 0;
  for (let ms = 0; ms < 10_000; ms += 10) {
    for (let each = 0; each < 10; each++) limit(app(`app-${(ms + each) % 1_000}`), read).catch(() => refused++);
    await clock.advance(10);
  }
  expect(most).toBeLessThanOrEqual(16);
  expect(reads).toBeGreaterThan(200);
  expect(reads).toBeLessThanOrEqual(40 + 20 * 10);
  expect(refused).toBeGreaterThan(9_000);
});

it("a flood for one app delays the read of another app by one turn", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  const evil = () => void limit(app("evil"), async () => undefined).catch(() => undefined);
  for (let ms = 0; ms < 5_000; ms++) {
    evil();
    await clock.advance(1);
  }
  let isRead = false;
  void limit(app("honest"), async () => {
    isRead = true;
  });
  for (let ms = 0; ms < 100 && !isRead; ms++) {
    evil();
    await clock.advance(1);
  }
  expect(isRead).toBe(true);
});

it("each wait ends: a read that gets no turn in two seconds is refused with a time to come again, and a slow one lets others in when it ends", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  const ends: (() => void)[] = [];
  const slow = Array.from({ length: 16 }, (_, at) =>
    limit(app(`slow-${at}`), () => new Promise<void>((resolve) => ends.push(resolve))),
  );
  await clock.advance(0);
  expect(ends).toHaveLength(16);
  const late = expect(limit(app("late"), async () => "read")).rejects.toThrow("too many reviews");
  await clock.advance(2_000);
  await late;
  const next = limit(app("next"), async () => "read");
  for (const end of ends) end();
  expect(await next).toBe("read");
  await Promise.all(slow);
});

it("a read that fails gives its place back", async () => {
  const limit = createReadLimit(createFakeClock());
  for (let each = 0; each < 30; each++) {
    await expect(limit(app("shop"), () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  }
});

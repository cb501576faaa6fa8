import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { threadCpuMs } from "../../test/support/thread-cpu.ts";
import { createClientPace } from "./client-pace.ts";

test("a client waits for what it has caused beyond its burst, and another does not", async () => {
  const clock = createFakeClock();
  const { charge } = createClientPace({ perSecond: 100, burst: 1_000, clock });
  expect([charge("a", 1_000), charge("a", 50), charge("a", 50), charge("b", 50)]).toEqual([0, 500, 1_000, 0]);
  await clock.advance(1_000);
  expect(charge("a", 0)).toBe(0);
});

test("a pause gives a client its burst and no more", async () => {
  const clock = createFakeClock();
  const { charge } = createClientPace({ perSecond: 100, burst: 1_000, clock });
  charge("a", 1_000);
  await clock.advance(3_600_000);
  expect([charge("a", 1_000), charge("a", 100)]).toEqual([0, 1_000]);
});

test("what is given back does not delay the next", () => {
  const { charge, giveBack } = createClientPace({ perSecond: 100, burst: 1_000, clock: createFakeClock() });
  expect(charge("a", 2_000)).toBe(10_000);
  giveBack("a", 2_000);
  expect(charge("a", 1_000)).toBe(0);
});

test("a client that keeps to its pace is served for ever, and one that floods is served at that pace", async () => {
  const clock = createFakeClock();
  const { allow } = createClientPace({ perSecond: 2, burst: 10, clock });
  for (let round = 0; round < 200; round++) {
    expect(allow("calm", 1)).toBe(true);
    await clock.advance(500);
  }
  const served = (tries: number) => Array.from({ length: tries }, () => allow("flood", 1)).filter(Boolean).length;
  expect(served(100)).toBe(10);
  await clock.advance(1_000);
  expect(served(100)).toBe(2);
});

test("a flood of new clients costs the same for each, and none of it stays", () => {
  const { allow } = createClientPace({ perSecond: 2, burst: 10, clock: createFakeClock() });
  const startMs = threadCpuMs();
  for (let client = 0; client < 100_000; client++) allow(`pod-${client}`, 1);
  expect(threadCpuMs() - startMs).toBeLessThan(2_000);
});

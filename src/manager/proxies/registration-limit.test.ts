import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRegistrationLimit } from "./registration-limit.ts";

it("lets a pod come back often, but not without end, and no pod on account of another", async () => {
  const clock = createFakeClock();
  const limit = createRegistrationLimit(clock);
  const allowed = (pod: string, tries: number) => Array.from({ length: tries }, () => limit.allow(pod)).filter(Boolean).length;
  expect(allowed("shop/a", 100)).toBe(10);
  expect(allowed("shop/b", 1)).toBe(1);
  await clock.advance(1_000);
  expect(allowed("shop/a", 100)).toBe(2);
  await clock.advance(60_000);
  expect(allowed("shop/a", 100)).toBe(10);
});

it("serves a proxy that comes back at its usual pace for ever", async () => {
  const clock = createFakeClock();
  const limit = createRegistrationLimit(clock);
  for (let round = 0; round < 200; round++) {
    expect(limit.allow("shop/a")).toBe(true);
    await clock.advance(500);
  }
});

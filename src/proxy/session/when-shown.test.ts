import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createEnforcer } from "./enforcer.ts";
import { whenShown } from "./when-shown.ts";

function setup() {
  const [clock, enforcer] = [createFakeClock(), createEnforcer()];
  let runs = 0;
  const timer = whenShown(
    () => enforcer.renewals,
    { ms: 1_000, mostMs: 6_000 },
    () => runs++,
    clock,
  );
  return { clock, enforcer, timer, runs: () => runs };
}

it("runs after a time without a renewal", async () => {
  const { clock, enforcer, runs } = setup();
  const end = enforcer.beginRenewal();
  await clock.advance(1_500);
  end();
  await clock.advance(1_499);
  expect(runs()).toBe(0);
  await clock.advance(1);
  expect(runs()).toBe(1);
});

it("runs at the latest after the longest time, and only once", async () => {
  const { clock, enforcer, runs } = setup();
  enforcer.beginRenewal();
  await clock.advance(5_999);
  expect(runs()).toBe(0);
  await clock.advance(60_000);
  expect(runs()).toBe(1);
});

it("does not run once it is cancelled, also after it has waited once more", async () => {
  const { clock, enforcer, timer, runs } = setup();
  enforcer.beginRenewal()();
  await clock.advance(1_500);
  timer.cancel();
  await clock.advance(60_000);
  expect(runs()).toBe(0);
});

import { expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { createRecentLoss } from "./recent-loss.ts";

it("a refusal waits half a second after a change of the routes, and not after the first routes", async () => {
  const clock = createFakeClock();
  const session = createEnforcer();
  const loss = createRecentLoss(session, clock);
  session.enforce(routes(1, { blue: ["a"] }));
  expect(await loss.outlast()).toBe(false);
  session.enforce(routes(2, { defaultSubset: ["a"] }));
  await clock.advance(100);
  let waited: boolean | undefined;
  void loss.outlast().then((value) => {
    waited = value;
  });
  await clock.advance(399);
  expect(waited).toBeUndefined();
  await clock.advance(1);
  expect(waited).toBe(true);
  expect(await loss.outlast()).toBe(false);
});

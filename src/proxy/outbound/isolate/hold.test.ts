import { expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply } from "../../../../test/support/layer-call.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { createRecentLoss } from "./hold.ts";
import { isolate } from "./isolate.ts";

it("a refusal waits half a second after a change of the routes, and not after the first routes", async () => {
  const clock = createFakeClock();
  const session = createEnforcer();
  const outlast = createRecentLoss(session, clock);
  session.enforce(routes(1, { blue: ["a"] }));
  expect(await outlast(false)).toBe(false);
  session.enforce(routes(2, { defaultSubset: ["a"] }));
  await clock.advance(100);
  let waited: boolean | undefined;
  void outlast(false).then((value) => {
    waited = value;
  });
  await clock.advance(399);
  expect(waited).toBeUndefined();
  await clock.advance(1);
  expect(waited).toBe(true);
  expect(await outlast(false)).toBe(false);
});

it("a write that is allowed after the wait is recorded as any other", async () => {
  const clock = createFakeClock();
  const session = createEnforcer();
  session.enforce(routes(1, { blue: ["a"] }));
  const handler = isolate(isolateDeps({ session, clock }))(fakeUpstream(() => jsonReply({}, 201)));
  session.enforce(routes(2, { defaultSubset: ["a"] }));
  const call = callOf("POST", "/api/v1/namespaces/a/pods", { body: "{}" });
  const reply = handler(call);
  await clock.advance(100);
  session.enforce(routes(3, { blue: ["a"] }));
  await clock.advance(400);
  expect([(await reply).status, call.record.decision, call.record.reason]).toEqual([201, "forwarded", undefined]);
});

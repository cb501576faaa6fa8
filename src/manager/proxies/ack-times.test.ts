import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { measureAcks } from "./ack-times.ts";

function setup() {
  const clock = createFakeClock();
  const seconds: number[] = [];
  return { clock, seconds, hooks: measureAcks(clock, { snapshotAcknowledged: (time) => void seconds.push(time) }) };
}

it("an acknowledgement is measured from the last snapshot that was sent to the pod", async () => {
  const { clock, seconds, hooks } = setup();
  hooks.onSent("shop/a");
  hooks.onSent("shop/b");
  await clock.advance(100);
  hooks.onAnswer("shop/a", "needs-whole");
  hooks.onSent("shop/a");
  await clock.advance(50);
  hooks.onAnswer("shop/a", "acked");
  hooks.onAnswer("shop/b", "acked");
  hooks.onAnswer("shop/b", "acked");
  expect(seconds).toEqual([0.05, 0.15]);
});

it("a refusal is none, and pods that never answer are forgotten in the end", () => {
  const { seconds, hooks } = setup();
  hooks.onSent("shop/a");
  hooks.onAnswer("shop/a", "refused");
  hooks.onAnswer("shop/a", "acked");
  hooks.onSent("shop/first");
  for (let index = 0; index < 10_000; index++) hooks.onSent(`shop/${index}`);
  hooks.onAnswer("shop/first", "acked");
  hooks.onAnswer("shop/9999", "acked");
  expect(seconds).toEqual([0]);
});

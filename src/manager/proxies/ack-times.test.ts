import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { measureAcks } from "./ack-times.ts";

const SNAPSHOT = snapshot(table([], {}));

function setup() {
  const clock = createFakeClock();
  const seconds: number[] = [];
  return { clock, seconds, hooks: measureAcks(clock, { snapshotAcknowledged: (time) => void seconds.push(time) }) };
}

it("an acknowledgement is measured from the last snapshot that was sent to the pod", async () => {
  const { clock, seconds, hooks } = setup();
  hooks.onSent("shop/a", SNAPSHOT, true);
  hooks.onSent("shop/b", SNAPSHOT, false);
  await clock.advance(100);
  hooks.onAnswer("shop/a", SNAPSHOT, "needs-snapshot");
  hooks.onSent("shop/a", SNAPSHOT, false);
  await clock.advance(50);
  hooks.onAnswer("shop/a", SNAPSHOT, "acked");
  hooks.onAnswer("shop/b", SNAPSHOT, "acked");
  hooks.onAnswer("shop/b", SNAPSHOT, "acked");
  expect(seconds).toEqual([0.05, 0.15]);
});

it("a refusal is none, and pods that never answer are forgotten in the end", () => {
  const { seconds, hooks } = setup();
  hooks.onSent("shop/a", SNAPSHOT, false);
  hooks.onAnswer("shop/a", SNAPSHOT, "refused");
  hooks.onAnswer("shop/a", SNAPSHOT, "acked");
  hooks.onSent("shop/first", SNAPSHOT, false);
  for (let index = 0; index < 10_000; index++) hooks.onSent(`shop/${index}`, SNAPSHOT, false);
  hooks.onAnswer("shop/first", SNAPSHOT, "acked");
  hooks.onAnswer("shop/9999", SNAPSHOT, "acked");
  expect(seconds).toEqual([0]);
});

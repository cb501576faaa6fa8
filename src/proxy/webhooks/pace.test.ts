import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { MAX_REVIEW_BYTES } from "../../kube/admission-review.ts";
import { pace } from "./pace.ts";
import type { ReviewCall } from "./review-call.ts";

/** Calls that announce a body, and how many of them were let through so far. */
function callers() {
  const clock = createFakeClock();
  let served = 0;
  const handler = pace(clock)(async () => {
    served++;
    return { status: 200, headers: {}, body: null };
  });
  const call = (
    address: string,
    bytes: number,
    more: Partial<ReviewCall["record"]> = {},
    signal = new AbortController().signal,
  ) =>
    handler({
      method: "POST",
      target: "/mutate",
      headers: { "content-length": String(bytes) },
      body: null,
      signal,
      record: { peerNames: undefined, address, ...more },
    });
  return {
    clock,
    call,
    get served() {
      return served;
    },
  };
}

it("a stranger that sends the largest reviews over and over waits, and the API server and peers do not", async () => {
  const world = callers();
  const hostile = Array.from({ length: 6 }, () => world.call("10.0.0.9", MAX_REVIEW_BYTES));
  await world.clock.flush();
  expect(world.served).toBe(1);
  for (let review = 0; review < 100; review++) await world.call("10.0.0.1", 10_000);
  await world.call("10.0.0.9", MAX_REVIEW_BYTES, { forwardedAs: "owner" });
  expect(world.served).toBe(102);
  await world.clock.advance(5_000);
  await Promise.all(hostile);
  expect(world.served).toBe(107);
});

it("a call whose client is gone while it waits costs its address nothing", async () => {
  const world = callers();
  const gone = new AbortController();
  const waiting = Array.from({ length: 50 }, () =>
    world.call("10.0.0.9", MAX_REVIEW_BYTES, {}, gone.signal).catch(() => undefined),
  );
  gone.abort();
  await Promise.all(waiting);
  await world.clock.advance(2_000);
  await world.call("10.0.0.9", MAX_REVIEW_BYTES);
});

it("a call that announces 8 PiB costs its address no more than the largest review", async () => {
  const world = callers();
  await world.call("10.0.0.9", 2 ** 53);
  await world.call("10.0.0.9", 10_000);
  const waiting = world.call("10.0.0.9", MAX_REVIEW_BYTES);
  await world.clock.advance(2_000);
  await waiting;
  expect(world.served).toBe(3);
});

import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { JUST_WRITTEN_MS } from "../../mesh/link/own-writes.ts";
import { createLastWrites } from "./last-writes.ts";

it("has the places of writes in flight, and of those that ended a moment ago", async () => {
  const clock = createFakeClock();
  const writes = createLastWrites(clock);
  const ends = ["a", "b", "b"].map(writes.begin);
  expect([...writes.places]).toEqual(["a", "b"]);
  ends[1]?.();
  await clock.advance(JUST_WRITTEN_MS);
  ends[0]?.();
  expect([...writes.places].sort()).toEqual(["a", "b"]);
  ends[2]?.();
  ends[2]?.();
  await clock.advance(JUST_WRITTEN_MS);
  expect([...writes.places]).toEqual(["a", "b"]);
  await clock.advance(1);
  expect([...writes.places]).toEqual([]);
});

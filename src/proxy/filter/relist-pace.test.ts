import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRelistPace } from "./relist-pace.ts";

const collection = (resource: string, namespace = "") => ({ group: "", resource, namespace });
const PODS = collection("pods");

it("lets the clients of a collection list again at once, then less often each time, and starts again after a rest", async () => {
  const clock = createFakeClock();
  const pace = createRelistPace(clock);
  const waited: number[] = [];
  for (let index = 0; index < 9; index++) {
    waited.push(pace(PODS));
    await clock.advance(waited.at(-1) ?? 0);
  }
  expect(waited).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  expect([pace(collection("pods", "a")), pace(collection("secrets"))]).toEqual([0, 0]);
  await clock.advance(120_000);
  expect(pace(PODS)).toBe(0);
});

it("remembers at most a thousand collections", () => {
  const pace = createRelistPace(createFakeClock());
  for (let index = 0; index <= 1_000; index++) pace(collection(`r${index}`));
  expect([pace(collection("r1000")), pace(collection("r0"))]).toEqual([1_000, 0]);
});

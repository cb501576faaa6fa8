import { expect, it } from "vitest";
import { mapInSlices } from "./fair-turns.ts";

function setUp() {
  let nowMs = 0;
  const slices: number[] = [];
  const over = new AbortController();
  const turns = {
    async run<T>(_client: string, work: () => T | Promise<T>) {
      const startMs = nowMs;
      const result = await work();
      slices.push(nowMs - startMs);
      return result;
    },
  };
  const options = { turns, client: "shop", clock: { monotonicMs: () => nowMs }, signal: over.signal };
  const spend = (ms: number) => {
    nowMs += ms;
  };
  return { slices, over, options, spend };
}

it("ends a slice after 5 ms, and keeps the order of the items", async () => {
  const { slices, options, spend } = setUp();
  const doubled = await mapInSlices(
    [1, 2, 3, 4, 5],
    (item) => {
      spend(2);
      return item * 2;
    },
    options,
  );
  expect(doubled).toEqual([2, 4, 6, 8, 10]);
  expect(slices).toEqual([6, 4]);
});

it("begins no slice after the signal", async () => {
  const { over, options, spend } = setUp();
  const done: number[] = [];
  const work = (item: number) => {
    done.push(item);
    spend(10);
    over.abort(new Error("lost"));
  };
  await expect(mapInSlices([1, 2], work, options)).rejects.toThrow("lost");
  expect(done).toEqual([1]);
});

it("takes no turn for no items", async () => {
  const { slices, options } = setUp();
  expect(await mapInSlices([], () => 1, options)).toEqual([]);
  expect(slices).toEqual([]);
});

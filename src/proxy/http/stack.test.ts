import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import type { CallNotes } from "./handler.ts";
import { type NamedLayer, stack } from "./stack.ts";

interface TestCall {
  readonly record: CallNotes;
  readonly way: readonly string[];
}

const passing = (name: string): NamedLayer<TestCall, string> => ({
  name,
  layer: (next) => async (call) => `${name}(${await next({ ...call, way: [...call.way, name] })})`,
});
const answering: NamedLayer<TestCall, string> = {
  name: "end",
  layer:
    () =>
    async ({ way }) =>
      way.join(">"),
};
const call = (): TestCall => ({ record: {}, way: [] });

it("composes the layers of any kind of call in the order of the list", async () => {
  const handler = stack([passing("outer"), passing("inner"), answering], createFakeClock());
  expect(await handler(call())).toBe("outer(inner(outer>inner))");
});

it("rejects a call that no layer answers", async () => {
  await expect(stack([passing("outer")], createFakeClock())(call())).rejects.toThrow("the last layer must answer it");
});

it("measures one call in 64, by the names of the layers", async () => {
  const clock = createFakeClock();
  const slow: NamedLayer<TestCall, string> = {
    name: "slow",
    layer: (next) => async (call) => {
      await clock.advance(7);
      return next(call);
    },
  };
  const handler = stack([passing("outer"), slow, answering], clock);
  const calls = Array.from({ length: 65 }, call);
  for (const each of calls) await handler(each);
  const measured = calls.flatMap(({ record }, index) => (record.timing === undefined ? [] : [index]));
  expect(measured).toEqual([0, 64]);
  expect([calls[64]?.record.timing?.names, calls[64]?.record.timing?.ms]).toEqual([
    ["outer", "slow", "end"],
    [0, 7, 0],
  ]);
});

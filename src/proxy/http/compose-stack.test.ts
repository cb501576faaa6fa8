import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { callOf } from "../../../test/support/layer-call.ts";
import { composeStack, type NamedLayer, timed } from "./compose-stack.ts";
import type { CallNotes, HttpCall, Reply } from "./handler.ts";
import { LayerTiming } from "./handler.ts";

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
  const handler = composeStack([passing("outer"), passing("inner"), answering], createFakeClock());
  expect(await handler(call())).toBe("outer(inner(outer>inner))");
});

it("rejects a call that no layer answers", async () => {
  await expect(composeStack([passing("outer")], createFakeClock())(call())).rejects.toThrow("the last layer must answer it");
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
  const handler = composeStack([passing("outer"), slow, answering], clock);
  const calls = Array.from({ length: 65 }, call);
  for (const each of calls) await handler(each);
  const measured = calls.flatMap(({ record }, index) => (record.timing === undefined ? [] : [index]));
  expect(measured).toEqual([0, 64]);
  expect([calls[64]?.record.timing?.names, calls[64]?.record.timing?.ms]).toEqual([
    ["outer", "slow", "end"],
    [0, 7, 0],
  ]);
});

it("counts each instant for the layer that holds the call, also when it fails", async () => {
  const clock = createFakeClock();
  const upstream = timed(2, async (_call: HttpCall): Promise<Reply> => {
    await clock.advance(100);
    throw new Error("reset");
  });
  const isolate = timed(1, async (call: HttpCall) => {
    await clock.advance(3);
    try {
      return await upstream(call);
    } finally {
      await clock.advance(4);
    }
  });
  const call = callOf("GET", "/version");
  const timing = new LayerTiming(clock, ["request-info", "isolate", "upstream"]);
  call.record.timing = timing;
  await clock.advance(1);
  await expect(isolate(call)).rejects.toThrow("reset");
  expect(timing.ms).toEqual([1, 7, 100]);
});

it("does nothing to a call that is not measured", async () => {
  const reply = { status: 200, headers: {}, body: null };
  expect(await timed(1, async (_call: HttpCall) => reply)(callOf("GET", "/version"))).toBe(reply);
});

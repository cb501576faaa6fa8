import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { callOf } from "../../../test/support/layer-call.ts";
import type { HttpCall, Reply } from "./handler.ts";
import { LayerTiming } from "./layer-timing.ts";
import { timed } from "./stack.ts";

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

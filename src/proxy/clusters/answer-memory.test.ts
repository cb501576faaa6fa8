import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../base/log.ts";
import { createAnswerMemory } from "./answer-memory.ts";

const MIB = 1024 * 1024;

it("a cluster that has exceeded its share is refused for 5 s in words that name it and the bound, and others are not", async () => {
  const clock = createFakeClock();
  let collections = 0;
  const memory = createAnswerMemory({ clock, log: silentLogger(), maxBytes: 8 * MIB, collect: () => void collections++ });
  const [bad, good] = [memory.of("bad"), memory.of("good")];
  let isCut = false;
  good.share.hold(() => expect.unreachable()).set(2 * MIB);
  bad.share
    .hold(() => {
      isCut = true;
    })
    .set(7 * MIB);
  expect([isCut, good.refusal()]).toEqual([true, undefined]);
  expect(bad.refusal()?.status).toMatchObject({
    code: 503,
    message: expect.stringMatching(/^ctrlmesh: cluster "bad" is not asked for objects: .*its share of the 8 MiB/),
    details: { retryAfterSeconds: 5 },
  });
  await clock.advance(4_500);
  expect(bad.refusal()?.status.details?.retryAfterSeconds).toBe(1);
  await clock.advance(500);
  expect(bad.refusal()).toBeUndefined();
  expect(collections).toBe(1);
});

import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { shareReads } from "./add.ts";

const app = (name: string) => ({ namespace: "ops", name });
const CLIENT = "10.0.0.9";

it("a flood of reviews of pods that no app selects causes at most ten reads of the app a second", async () => {
  const clock = createFakeClock();
  const reads: string[] = [];
  const read = shareReads(async ({ name }) => reads.push(name), clock);
  for (let ms = 0; ms < 1_000; ms++) {
    for (let each = 0; each < 5; each++) void read(app("shop"), CLIENT);
    await clock.advance(1);
  }
  expect(reads).toEqual(Array.from({ length: 10 }, () => "shop"));
});

it("each caller gets a read that began after its request, for each app separately, and a failed read is repeated", async () => {
  const clock = createFakeClock();
  let now = "first";
  const read = shareReads(async ({ name }) => {
    if (now === "") throw new Error("refused");
    return `${name} ${now}`;
  }, clock);
  const [one, other] = [read(app("shop"), CLIENT), read(app("foo"), CLIENT)];
  await clock.advance(50);
  now = "second";
  const late = read(app("shop"), CLIENT);
  await clock.advance(50);
  expect(await Promise.all([one, other, late])).toEqual(["shop second", "foo second", "shop second"]);
  now = "";
  const failed = expect(read(app("shop"), CLIENT)).rejects.toThrow("refused");
  await clock.advance(100);
  await failed;
  now = "third";
  const again = read(app("shop"), CLIENT);
  await clock.advance(100);
  expect(await again).toBe("shop third");
});

it("a read belongs to one address, so that nobody's read waits in the queue of another address", async () => {
  const clock = createFakeClock();
  const reads: string[] = [];
  const read = shareReads(async ({ name }, client) => reads.push(`${name} for ${client}`), clock);
  void read(app("shop"), "10.0.0.1");
  void read(app("shop"), CLIENT);
  await clock.advance(100);
  expect(reads).toEqual(["shop for 10.0.0.1", "shop for 10.0.0.9"]);
});

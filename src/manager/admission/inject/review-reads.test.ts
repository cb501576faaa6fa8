import { expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { createReadLimit, shareReads } from "./review-reads.ts";

it("a flood of reviews from 300 addresses causes at most 16 reads at once and 20 a second, after a burst of 40", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  let [reads, running, most] = [0, 0, 0];
  const read = async () => {
    reads++;
    most = Math.max(most, ++running);
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    running--;
  };
  let refused = 0;
  for (let ms = 0; ms < 10_000; ms += 10) {
    for (let each = 0; each < 10; each++) limit(`10.0.1.${(ms + each) % 300}`, read).catch(() => refused++);
    await clock.advance(10);
  }
  expect(most).toBeLessThanOrEqual(16);
  expect(reads).toBeGreaterThan(200);
  expect(reads).toBeLessThanOrEqual(40 + 20 * 10);
  expect(refused).toBeGreaterThan(7_000);
});

it("the pods of a rollout are served while four other addresses send as many reviews as they like, for any apps", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  let reads = 0;
  const read = async () => {
    reads++;
    await new Promise<void>((resolve) => void clock.after(5, resolve));
  };
  const waits: number[] = [];
  const readForPod = async () => {
    const startMs = clock.monotonicMs();
    await limit("10.0.0.9", read);
    waits.push(clock.monotonicMs() - startMs);
  };
  let served = 0;
  /** The StatefulSet, the root, and two revisions. */
  const rolledPod = async () => {
    await readForPod();
    await readForPod();
    await Promise.all([readForPod(), readForPod()]);
    served++;
  };
  for (let ms = 0; ms < 30_000; ms += 5) {
    for (let address = 1; address <= 4; address++) void limit(`10.0.0.${address}`, read).catch(() => undefined);
    if (ms % 1_500 === 0) void rolledPod();
    await clock.advance(5);
  }
  expect(served).toBeGreaterThanOrEqual(19);
  expect(waits.length).toBeGreaterThanOrEqual(4 * 19);
  expect(Math.max(...waits)).toBeLessThan(1_000);
  expect(reads).toBeLessThanOrEqual(40 + 20 * 30);
});

it("the pods of a rollout that starts at once are all served", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  const pods = Promise.all(Array.from({ length: 64 }, () => limit("10.0.0.9", async () => undefined)));
  await clock.advance(2_000);
  expect(await pods).toHaveLength(64);
});

it("each wait ends: a read that gets no turn in two seconds is refused with a time to come again, and a slow one lets others in when it ends", async () => {
  const clock = createFakeClock();
  const limit = createReadLimit(clock);
  const ends: (() => void)[] = [];
  const slow = Array.from({ length: 16 }, (_, at) =>
    limit(`10.0.1.${at}`, () => new Promise<void>((resolve) => ends.push(resolve))),
  );
  await clock.advance(0);
  expect(ends).toHaveLength(16);
  const late = expect(limit("10.0.0.8", async () => "read")).rejects.toThrow("too many reviews");
  await clock.advance(2_000);
  await late;
  const next = limit("10.0.0.9", async () => "read");
  for (const end of ends) end();
  expect(await next).toBe("read");
  await Promise.all(slow);
});

it("a read that fails gives its place back", async () => {
  const limit = createReadLimit(createFakeClock());
  for (let each = 0; each < 30; each++) {
    await expect(limit("10.0.0.9", () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  }
});

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

import fc from "fast-check";
import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { systemClock } from "../base/clock.ts";
import { Registry } from "../base/metrics.ts";
import { createWorkQueueMetrics } from "./controller-metrics.ts";
import { createWorkQueue } from "./work-queue.ts";

function setUp() {
  const clock = createFakeClock();
  const registry = new Registry();
  const queue = createWorkQueue({ name: "q", clock, random: () => 1, metrics: createWorkQueueMetrics(registry) });
  const worked: string[] = [];
  const gates: (() => void)[] = [];
  return {
    clock,
    registry,
    queue,
    worked,
    /** Runs workers that note the key. */
    run: (concurrency = 1) => queue.run(concurrency, async (key) => void worked.push(key)),
    /** Runs workers that wait at each key until the test releases them. */
    runGated: (concurrency: number) =>
      queue.run(concurrency, async (key) => {
        worked.push(key);
        await new Promise<void>((resolve) => gates.push(resolve));
      }),
    letGo: () => gates.shift()?.(),
  };
}

test("a waiting key is queued once", async () => {
  const { queue, worked, run, clock } = setUp();
  for (const key of ["a", "b", "a", "a"]) queue.add(key);
  expect(queue.depth).toBe(2);
  void run();
  await clock.flush();
  expect(worked).toEqual(["a", "b"]);
});

test("a key that is added while in progress is queued again afterwards, and has at most one worker", async () => {
  const { queue, worked, runGated, letGo, clock } = setUp();
  void runGated(3);
  queue.add("a");
  await clock.flush();
  queue.add("a");
  queue.add("a");
  await clock.flush();
  expect(worked).toEqual(["a"]);
  letGo();
  await clock.flush();
  expect(worked).toEqual(["a", "a"]);
  letGo();
  await clock.flush();
  expect(worked).toHaveLength(2);
});

test("if a key has several delays, the earliest time counts", async () => {
  const { queue, worked, run, clock } = setUp();
  void run();
  queue.addAfter("a", 500);
  queue.addAfter("a", 100);
  queue.addAfter("a", 300);
  await clock.advance(99);
  expect(worked).toEqual([]);
  await clock.advance(1);
  expect(worked).toEqual(["a"]);
  await clock.advance(1_000);
  expect(worked).toEqual(["a"]);
});

test("the backoff of a key grows until forget", () => {
  const { queue } = setUp();
  const delays = [1, 2, 3].map(() => queue.addRateLimited("a"));
  expect(delays).toEqual([50, 100, 200]);
  expect(queue.addRateLimited("b")).toBe(50);
  queue.forget("a");
  expect(queue.addRateLimited("a")).toBe(50);
});

test("a shutdown processes waiting keys and accepts no more", async () => {
  const { queue, worked, runGated, letGo, clock } = setUp();
  const running = runGated(1);
  queue.add("a");
  queue.add("b");
  queue.addAfter("late", 10);
  await clock.flush();
  let drained = false;
  const shutdown = queue.shutdown().then(() => (drained = true));
  queue.add("c");
  letGo();
  await clock.advance(100);
  expect([worked, drained]).toEqual([["a", "b"], false]);
  letGo();
  await Promise.all([shutdown, running]);
  expect(worked).toEqual(["a", "b"]);
});

test("cleared keys are not processed", async () => {
  const { queue, worked, runGated, letGo, clock } = setUp();
  const running = runGated(1);
  queue.add("a");
  await clock.flush();
  for (const key of ["a", "b"]) queue.add(key);
  queue.addAfter("c", 10);
  queue.clear();
  letGo();
  await clock.advance(100);
  await queue.shutdown();
  await running;
  expect(worked).toEqual(["a"]);
  expect(clock.pending).toBe(0);
});

test("the metrics have the queue's name", async () => {
  const { queue, run, clock, registry } = setUp();
  queue.add("a");
  await clock.advance(2_000);
  void run();
  queue.addRateLimited("b");
  await clock.advance(50);
  const text = await registry.metrics();
  expect(text).toContain('workqueue_adds_total{name="q"} 2');
  expect(text).toContain('workqueue_depth{name="q"} 0');
  expect(text).toContain('workqueue_retries_total{name="q"} 1');
  expect(text).toContain('workqueue_queue_duration_seconds_sum{name="q"} 2');
  expect(text).toContain('workqueue_work_duration_seconds_count{name="q"} 2');
});

test("work that releases its worker keeps its key", async () => {
  const { queue, worked, clock } = setUp();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const running = queue.run(1, (key, release) => {
    worked.push(key);
    if (key !== "a" || worked.length > 2) return Promise.resolve();
    release();
    return ended;
  });
  for (const key of ["a", "b"]) queue.add(key);
  await clock.flush();
  queue.add("a");
  await clock.flush();
  expect(worked).toEqual(["a", "b"]);
  end();
  await clock.flush();
  expect(worked).toEqual(["a", "b", "a"]);
  await Promise.all([queue.shutdown(), running]);
});

test("for all orders of adds: no key runs twice at a time, and every key runs after its last add", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), key: fc.constantFrom("a", "b", "c"), delayMs: fc.nat({ max: 20 }) }),
    fc.record({ kind: fc.constant("advance" as const), ms: fc.nat({ max: 15 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 3 }), async (steps, concurrency) => {
      const clock = createFakeClock();
      const queue = createWorkQueue({ name: "q", clock, random: () => 0 });
      const busy = new Set<string>();
      const open = new Set<string>();
      const running = queue.run(concurrency, async (key) => {
        expect(busy.has(key)).toBe(false);
        busy.add(key);
        open.delete(key);
        await new Promise<void>((resolve) => clock.after(7, resolve));
        busy.delete(key);
      });
      for (const next of steps) {
        if (next.kind === "advance") await clock.advance(next.ms);
        else {
          open.add(next.key);
          queue.addAfter(next.key, next.delayMs);
        }
      }
      for (let turn = 0; turn < 20; turn++) await clock.advance(50);
      expect([...open]).toEqual([]);
      await queue.shutdown();
      await running;
    }),
    { interruptAfterTimeLimit: 3_000 },
  );
});

test("between two keys whose work is long, the event loop makes a turn, whatever the number of workers", async () => {
  const queue = createWorkQueue({ name: "q", clock: systemClock, random: () => 1 });
  let turn = 0;
  const count = () => void (turn < 1_000 && setImmediate(() => ++turn && count()));
  const turns: number[] = [];
  for (let key = 0; key < 20; key++) queue.add(`${key}`);
  count();
  const done = queue.run(4, async () => {
    await undefined;
    turns.push(turn);
    const endMs = systemClock.monotonicMs() + 3;
    while (systemClock.monotonicMs() < endMs);
  });
  await queue.shutdown();
  await done;
  turn = 1_000;
  // The first keys of the workers begin together.
  const spaced = turns.slice(4);
  expect(spaced).toHaveLength(16);
  expect(new Set(spaced).size).toBe(16);
});

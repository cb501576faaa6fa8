import { expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLogger } from "../../base/log.ts";
import { createThreadKeeper } from "./review-thread.ts";

/** A thread that does what a message says. */
const PROGRAM = `
  import { parentPort, workerData } from "node:worker_threads";
  parentPort.on("message", (what) => {
    if (what === "throw") throw new Error("broken");
    if (what === "reject") return Promise.reject(new Error("broken"));
    if (what === "exit") process.exit(1);
    if (what === "fill") for (const all = []; ; ) all.push(Array.from({ length: 1000 }, () => ({})));
    parentPort.postMessage([workerData, what]);
  });
`;

function keeperWith() {
  const seen: unknown[] = [];
  let [starts, ends] = [0, 0];
  const keeper = createThreadKeeper<string, unknown>({
    file: new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`),
    workerData: () => starts,
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    onStart() {
      starts++;
      keeper.post("hello");
    },
    onMessage: (message) => seen.push(message),
    onEnd: () => ends++,
    clock: systemClock,
    random: () => 0,
    log: silentLogger(),
  });
  return { keeper, seen, counts: () => ({ starts, ends }) };
}

it.each(["throw", "reject", "exit", "fill"])(
  "after a thread has ended (%s) another one gets what it has to know, and the process lives",
  { timeout: 20_000 },
  async (what) => {
    const { keeper, seen, counts } = keeperWith();
    keeper.start();
    await eventually(() => expect(seen).toEqual([[0, "hello"]]));
    keeper.post(what);
    await eventually(
      () =>
        expect(seen).toEqual([
          [0, "hello"],
          [1, "hello"],
        ]),
      15_000,
    );
    expect(counts()).toEqual({ starts: 2, ends: 1 });
    await keeper.stop();
  },
);

it("a retired thread that ends is not started again", async () => {
  const { keeper, counts } = keeperWith();
  keeper.start();
  keeper.retire();
  keeper.post("exit");
  await eventually(() => expect(counts()).toEqual({ starts: 1, ends: 1 }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(counts().starts).toBe(1);
});

it("a stopped thread has not ended by itself", async () => {
  const { keeper, counts } = keeperWith();
  keeper.start();
  await keeper.stop();
  expect(counts()).toEqual({ starts: 1, ends: 0 });
});

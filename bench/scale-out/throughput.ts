// The throughput of one shard and of five, when a reconcile waits for another system. Each operator has a
// fixed number of workers and more Foos than it can reconcile in the measured time.
import { setTimeout as sleep } from "node:timers/promises";
import { countsOf } from "./work.ts";
import { type ScaleOutOptions, type ScaleOutWorld, startScaleOutWorld } from "./world.ts";

export interface Throughput {
  readonly shards: number;
  readonly reconcilesPerSecond: number;
  /** The largest share of one operator. */
  readonly largestShare: number;
}

const WINDOW_MS = 15_000;
const STARTED_WITHIN_MS = 60_000;

/** Scales the same StatefulSet while its operators work. @param steps ascending numbers of shards */
export async function throughputs(steps: readonly number[], options: ScaleOutOptions): Promise<Throughput[]> {
  const world = await startScaleOutWorld(options);
  const results: Throughput[] = [];
  try {
    for (const shards of steps) {
      const running = world.pods.length;
      await world.scale(shards);
      await Promise.all(world.pods.slice(running).map((pod) => pod.startOperator()));
      await untilAllWork(world);
      results.push(await measured(world));
    }
    return results;
  } finally {
    await world.stop();
  }
}

async function measured(world: ScaleOutWorld): Promise<Throughput> {
  const [before, start] = [await countsOf(world), performance.now()];
  await sleep(WINDOW_MS);
  const [after, end] = [await countsOf(world), performance.now()];
  if (after.some(({ pending }) => pending === 0)) throw new Error("an operator had nothing to do: there are too few Foos");
  const each = after.map(({ reconciles }, index) => reconciles - (before[index]?.reconciles ?? 0));
  const all = each.reduce((sum, count) => sum + count, 0);
  return {
    shards: each.length,
    reconcilesPerSecond: (all * 1000) / (end - start),
    largestShare: Math.max(...each) / all,
  };
}

async function untilAllWork(world: ScaleOutWorld): Promise<void> {
  const end = performance.now() + STARTED_WITHIN_MS;
  while (!(await countsOf(world)).every(({ reconciles }) => reconciles > 0)) {
    if (performance.now() > end) throw new Error("an operator does not reconcile");
    await sleep(200);
  }
}

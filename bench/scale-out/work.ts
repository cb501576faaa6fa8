// The same work with different numbers of shards: the operators start on Foos that nobody has reconciled, and
// run until nothing is left. Counts what each operator received and did.
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf, memoryOf } from "../../test/support/process-memory.ts";
import type { PodCounts } from "./pod.ts";
import { type ScaleOutOptions, type ScaleOutWorld, startScaleOutWorld } from "./world.ts";

export interface ScaleOutRun {
  /** 0: one operator without a mesh. */
  readonly shards: number;
  /** What each operator did. */
  readonly operators: readonly PodCounts[];
  readonly apiServerCpuSeconds: number;
  readonly managerCpuSeconds: number;
  readonly managerRssMb: number;
  /** Resident memory of each proxy. */
  readonly proxyRssMb: readonly number[];
}

const POLL_MS = 500;
const WITHIN_MS = 240_000;

export async function scaleOutRun(shards: number, options: ScaleOutOptions): Promise<ScaleOutRun> {
  const world = await startScaleOutWorld(options);
  try {
    await (shards === 0 ? world.addDirectPod() : world.scale(shards));
    const cpu = () => ({ apiServer: cpuSecondsOf(world.apiServerPid), manager: cpuSecondsOf(world.managerPid) });
    const before = { cpu: cpu(), pods: await countsOf(world) };
    await Promise.all(world.pods.map((pod) => pod.startOperator()));
    const after = { pods: await untilIdle(world), cpu: cpu() };
    await world.expectAllReconciled();
    return {
      shards,
      operators: after.pods.map((counts, index) => difference(counts, before.pods[index])),
      apiServerCpuSeconds: after.cpu.apiServer - before.cpu.apiServer,
      managerCpuSeconds: after.cpu.manager - before.cpu.manager,
      managerRssMb: memoryOf(world.managerPid).rssMb,
      proxyRssMb: world.pods.map((pod) => pod.proxyRssMb()),
    };
  } finally {
    await world.stop();
  }
}

export function countsOf({ pods }: ScaleOutWorld): Promise<PodCounts[]> {
  return Promise.all(pods.map((pod) => pod.counts()));
}

/** Waits until every operator has worked, and nothing has changed and nothing was pending twice in a row. */
async function untilIdle(world: ScaleOutWorld): Promise<PodCounts[]> {
  const end = performance.now() + WITHIN_MS;
  let reconcilesBefore = -1;
  for (; performance.now() < end; await sleep(POLL_MS)) {
    const now = await countsOf(world);
    const reconciles = now.reduce((sum, counts) => sum + counts.reconciles, 0);
    if (now.every((counts) => counts.reconciles > 0 && counts.pending === 0) && reconciles === reconcilesBefore) return now;
    reconcilesBefore = reconciles;
  }
  throw new Error("the operators did not come to an end");
}

function difference(after: PodCounts, before: PodCounts | undefined): PodCounts {
  const entries = Object.entries(after).map(([key, value]) => [key, value - (before?.[key as keyof PodCounts] ?? 0)]);
  return Object.fromEntries(entries) as unknown as PodCounts;
}

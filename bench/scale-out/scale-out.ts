// `npm run bench -- --only scale-out`: what a shard's operator receives and does with 1, 2 and 4 shards,
// against one operator without the mesh, and the throughput of 1 and 5 shards. The control plane, the manager
// and the proxies are real.
import { bundleProxy } from "../../test/support/bundled-proxy.ts";
import { shardsText } from "./table.ts";
import { type Throughput, throughputs } from "./throughput.ts";
import { type ScaleOutRun, scaleOutRun } from "./work.ts";

export interface ScaleOutReport {
  readonly runs: readonly ScaleOutRun[];
  readonly throughputs: readonly Throughput[];
}

const SIZE = { namespaces: 200, foos: 2_000 };
/** A reconcile costs processor time. */
const BUSY = ["--reconcile-cpu", "10ms"];
/**
 * A reconcile waits, with the five workers that the evaluation of kubernetes-controller-sharding has. Five
 * such operators need a third of the two cores, with all that they use. So the machine is not what limits
 * them.
 */
const WAITING = ["--reconcile-wait", "250ms", "--workers", "5"];

export async function scaleOut(note: (text: string) => void): Promise<ScaleOutReport> {
  const { main, remove } = await bundleProxy();
  const options = { ...SIZE, proxyMain: main };
  const runs: ScaleOutRun[] = [];
  try {
    for (const shards of [0, 1, 2, 4]) {
      note(`scale-out: ${shardsText(shards)}`);
      runs.push(await scaleOutRun(shards, { ...options, flags: BUSY }));
    }
    note("scale-out: throughput of 1 and 5 shards");
    return { runs, throughputs: await throughputs([1, 5], { ...options, flags: WAITING }) };
  } finally {
    remove();
  }
}

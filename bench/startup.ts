// Measures the time from the proxy's start until /readyz succeeds, with a stored snapshot.
import { median } from "./table.ts";
import type { Side } from "./world.ts";

/** The median time of `restarts` restarts, in milliseconds. */
export async function readyAfterMs(side: Side, restarts: number): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < restarts; index++) {
    await side.pod.killProxy();
    const start = performance.now();
    await side.pod.restartProxy();
    while (!(await isReady(side.pod.healthUrl))) await new Promise((resolve) => setTimeout(resolve, 2));
    times.push(performance.now() - start);
  }
  return median(times);
}

async function isReady(healthUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${healthUrl}/readyz`)).ok;
  } catch {
    return false;
  }
}

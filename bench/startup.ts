// Measures the time from the proxy's start to /readyz, with a stored snapshot. Called by main.ts.
import { median } from "./table.ts";
import type { Side } from "./world.ts";

/** The median of `times` restarts, in milliseconds. */
export async function readyAfterMs(side: Side, times: number): Promise<number> {
  const took: number[] = [];
  for (let index = 0; index < times; index++) {
    await side.pod.killProxy();
    const start = performance.now();
    await side.pod.restartProxy();
    while (!(await isReady(side.pod.healthUrl))) await new Promise((resolve) => setTimeout(resolve, 2));
    took.push(performance.now() - start);
  }
  return median(took);
}

async function isReady(healthUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${healthUrl}/readyz`)).ok;
  } catch {
    return false;
  }
}

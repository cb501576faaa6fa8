// When the faults of a policy begin or end by the time of the day. Pure.
import type { FaultRule } from "../../policy/policy.ts";

const DAY_MS = 86_400_000;

/** Milliseconds until the next edge of each window; on some days nothing changes there. @param nowMs since the epoch */
export function nextFaultChangeMs(faults: readonly FaultRule[], nowMs: number): number[] {
  return faults.flatMap(({ effective }) => {
    if (effective === undefined) return [];
    const edges = [effective.startSecond, effective.endSecond];
    return edges.map((second) => DAY_MS - ((((nowMs - second * 1_000) % DAY_MS) + DAY_MS) % DAY_MS));
  });
}

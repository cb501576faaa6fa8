// Clusters that leave a PlacementDecision count for some time more. Pure. A program writes the slices of a decision one after the other,
// so a cluster that changes its slice is in none of them for a moment. Without this, the cluster would move away and back.
import type { ChosenClusters } from "../apps/chosen-clusters.ts";

/** For how long a cluster still counts that no slice names any more. */
export const LEAVE_MS = 10_000;

export interface SettledDecisions {
  readonly chosen: ChosenClusters;
  /** By decision key and cluster: until when it counts. */
  readonly leaving: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** The time until the next cluster has left; undefined if none leaves. */
  readonly againMs: number | undefined;
}

/** A decision that is missing as a whole is missing at once: then clusters keep their owners. */
export function settleDecisions(before: SettledDecisions | undefined, now: ChosenClusters, nowMs: number): SettledDecisions {
  const chosen = new Map<string, ReadonlySet<string>>();
  const leaving = new Map<string, ReadonlyMap<string, number>>();
  const ends: number[] = [];
  for (const key of new Set([...now.keys(), ...(before?.chosen.keys() ?? []), ...(before?.leaving.keys() ?? [])])) {
    const names = now.get(key);
    const earlier = before?.leaving.get(key);
    const leavers = new Map<string, number>();
    for (const name of new Set([...(before?.chosen.get(key) ?? []), ...(earlier?.keys() ?? [])])) {
      const untilMs = earlier?.get(name) ?? nowMs + LEAVE_MS;
      if (!names?.has(name) && untilMs > nowMs) leavers.set(name, untilMs);
    }
    if (names !== undefined) chosen.set(key, new Set([...names, ...leavers.keys()]));
    if (leavers.size > 0) leaving.set(key, leavers);
    ends.push(...leavers.values());
  }
  return { chosen, leaving, againMs: ends.length === 0 ? undefined : Math.min(...ends) - nowMs };
}

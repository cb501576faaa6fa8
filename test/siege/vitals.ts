// What the siege watches besides calls, once a second: the memory of the processes, and who holds the manager's lease since when.
import { setTimeout as sleep } from "node:timers/promises";
import { LEASES } from "../../src/kube/client/resources.ts";
import { LEASE_NAME } from "../../src/manager/context/leadership.ts";
import { memoryOf } from "../support/process-memory.ts";
import type { Program } from "./programs.ts";
import type { World } from "./world.ts";

export interface Vitals {
  /** The most that the resident set has had, in MB, by program. */
  readonly rssMb: Readonly<Record<string, number>>;
  /** The longest time between two renewals of the lease, in milliseconds. */
  readonly oldestLeaseMs: number;
  /** How often the lease has changed hands, a restart of the holder included. */
  readonly leaseTransitions: number;
}

export function watchVitals(world: World): { stop(): Promise<Vitals> } {
  const programs: readonly Program[] = [world.manager, world.measured, world.decoy];
  const rssMb: Record<string, number> = {};
  const over = new AbortController();
  let [oldestLeaseMs, first, last] = [0, undefined as number | undefined, 0];

  const look = async () => {
    for (const { name, supervised } of programs) rssMb[name] = Math.max(rssMb[name] ?? 0, rssOf(supervised));
    const { spec } = await world.client.get(LEASES, { namespace: "ctrlmesh-system", name: LEASE_NAME });
    last = spec?.leaseTransitions ?? 0;
    first ??= last;
    const renewedMs = Date.parse(spec?.renewTime ?? "");
    if (renewedMs > 0) oldestLeaseMs = Math.max(oldestLeaseMs, Date.now() - renewedMs);
  };
  const loop = (async () => {
    while (!over.signal.aborted) {
      await look().catch(() => undefined);
      await sleep(1_000, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      over.abort();
      await loop;
      return { rssMb, oldestLeaseMs, leaseTransitions: last - (first ?? last) };
    },
  };
}

/** The resident set, in MB; 0 if the process does not run. */
export function rssOf({ isUp, child }: Program["supervised"]): number {
  try {
    return isUp ? memoryOf(child.pid).rssMb : 0;
  } catch {
    return 0; // it has just ended
  }
}

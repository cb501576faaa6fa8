// Waits until the world has converged, or until the time limits are over.
import { setTimeout as sleep } from "node:timers/promises";
import { proxyReady } from "../support/proxy-launcher.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { type Leader, readsOf, whyLate } from "./informers.ts";
import { findLate, type Late, type LateWork } from "./late-work.ts";
import type { ChaosWorld } from "./world.ts";

const POLL_MS = 250;
const MAX_NAMED = 10;

export interface WaitLimits {
  /** The time in which ownership and work must converge. */
  readonly ownershipMs: number;
  /** The extra time for work that waits for client-go. */
  readonly extraWorkMs: number;
}

export interface Outcome {
  /** A description of everything that did not converge in time. */
  readonly late: readonly string[];
  /** Start and end of the wait, in milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  /** When ownership converged; undefined if it did not. */
  readonly ownedMs: number | undefined;
  /**
   * The number of watches that the proxies have refused after ownership converged, because the client must
   * list again.
   */
  readonly refused: number;
  /** The leaders of the subsets at the end. */
  readonly leaders: readonly Leader[];
}

/** The state when ownership converged. */
interface OwnershipConverged {
  readonly sinceMs: number;
  /** The number of watches that each pod's proxy had refused until ownership converged. */
  readonly refusals: ReadonlyMap<string, number>;
}

/** Reads the state of the world until it has converged, or until something is overdue. */
export async function waitConverged(world: ChaosWorld, { ownershipMs, extraWorkMs }: WaitLimits): Promise<Outcome> {
  const fromMs = Date.now();
  let owned: OwnershipConverged | undefined;
  for (; ; await sleep(POLL_MS)) {
    const found = await findLate(world).catch((error: unknown) => `cannot read the state: ${error}`);
    const toMs = Date.now();
    const isOver = toMs > fromMs + ownershipMs + extraWorkMs;
    if (typeof found === "string" && !isOver) continue; // ownership is unknown
    const now = typeof found === "string" ? { ownership: [found], work: [], leaders: new Map() } : found;
    if (now.ownership.length > 0) owned = undefined;
    else owned ??= { sinceMs: toMs, refusals: await refusalsOf(world) };
    const late = toMs > fromMs + ownershipMs ? await overdue(world, now, owned, isOver) : [];
    if (late.length > 0 || now.ownership.length + now.work.length === 0) {
      const refused = owned === undefined ? [] : [...(await refusalsSince(world, owned)).values()];
      const leaders = [...now.leaders.values()];
      return { late, fromMs, toMs, ownedMs: owned?.sinceMs, refused: refused.reduce((sum, one) => sum + one, 0), leaders };
    }
  }
}

/**
 * The problems that exceed their time limits.
 * @param owned undefined while ownership has not converged
 * @param isOver true after all limits
 */
async function overdue(
  world: ChaosWorld,
  { ownership, work, leaders }: Late,
  owned: OwnershipConverged | undefined,
  isOver: boolean,
): Promise<string[]> {
  if (owned === undefined) return [...ownership, ...problemsOf(work)];
  if (work.length === 0) return [];
  const reads = readsOf(world.kube.audit(), world.kube.startedAtMs);
  const refusals = await refusalsSince(world, owned);
  const reasons = [...new Set(work.map((item) => item.owner))].flatMap((owner) => {
    const leader = leaders.get(owner);
    const refused = refusals.get(leader?.pod ?? "") ?? 0;
    const why = whyLate({ leader, reads, ownedMs: owned.sinceMs, refused, nowMs: Date.now() });
    const reason = why ?? (isOver ? "its informers have waited longer than client-go does" : undefined);
    return reason === undefined ? [] : [`late in ${owner === "" ? "the default subset" : owner}: ${reason}`];
  });
  return reasons.length === 0 ? [] : [...problemsOf(work), ...reasons];
}

function problemsOf(work: readonly LateWork[]): string[] {
  const words = work.slice(0, MAX_NAMED).map((item) => item.problem);
  return work.length > MAX_NAMED ? [...words, `and ${work.length - MAX_NAMED} more`] : words;
}

/**
 * The number of watches that each pod's proxy has refused since its start, without proxies that do not
 * respond.
 */
async function refusalsOf(world: ChaosWorld): Promise<Map<string, number>> {
  const counts = world.allPods().map(async ({ name, proxy }): Promise<[string, number]> => {
    if (proxy === undefined) return [name, 0];
    const metrics = await readMetrics(proxyReady(proxy).healthUrl);
    return [name, metrics.sum("ctrlmesh_proxy_decisions_total", { verb: "watch", reason: "list-again" })];
  });
  return new Map((await Promise.allSettled(counts)).flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
}

async function refusalsSince(world: ChaosWorld, { refusals }: OwnershipConverged): Promise<Map<string, number>> {
  const now = await refusalsOf(world);
  // A proxy that has restarted counts from 0 again, so its result may be too low.
  return new Map([...now].map(([pod, count]) => [pod, count - Math.min(count, refusals.get(pod) ?? 0)]));
}

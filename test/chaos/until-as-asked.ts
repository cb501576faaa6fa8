// Waits for a world that is as asked for, and knows when that takes too long. Called by run-chaos.ts, before the chaos and after it.
import { setTimeout as sleep } from "node:timers/promises";
import { readMetrics } from "../support/proxy-metrics.ts";
import { askingsOf, type Leader, whyLate } from "./informers.ts";
import { type Lag, type Laggards, laggards } from "./laggards.ts";
import type { ChaosWorld } from "./world.ts";

const LOOK_MS = 250;
const MAX_NAMED = 10;

export interface Patience {
  /** Within which everything must be as asked for. */
  readonly quietMs: number;
  /** For how much longer work may wait for client-go. */
  readonly reflectorMs: number;
}

export interface Outcome {
  /** What was not as asked for in time, in words. */
  readonly left: readonly string[];
  /** When the wait began and ended: milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Since when ownership was as asked for, if it was in the end. */
  readonly ownedMs: number | undefined;
  /** How many watches the pods' proxies have refused since then, for want of a list. */
  readonly refused: number;
  /** Who led the subsets at the end. */
  readonly leaders: readonly Leader[];
}

/** Ownership is as asked for. */
interface Owned {
  readonly sinceMs: number;
  /** By pod: what its proxy had refused by then. */
  readonly refusals: ReadonlyMap<string, number>;
}

/** Looks until everything is as asked for, or should have been. */
export async function untilAsAsked(world: ChaosWorld, { quietMs, reflectorMs }: Patience): Promise<Outcome> {
  const fromMs = Date.now();
  let owned: Owned | undefined;
  for (; ; await sleep(LOOK_MS)) {
    const look = await laggards(world).catch((error: unknown) => `cannot look: ${error}`);
    const toMs = Date.now();
    const isOver = toMs > fromMs + quietMs + reflectorMs;
    if (typeof look === "string" && !isOver) continue; // says nothing of ownership
    const now = typeof look === "string" ? { mesh: [look], work: [], leaders: new Map() } : look;
    if (now.mesh.length > 0) owned = undefined;
    else owned ??= { sinceMs: toMs, refusals: await refusalsOf(world) };
    const left = toMs > fromMs + quietMs ? await overdue(world, now, owned, isOver) : [];
    if (left.length > 0 || now.mesh.length + now.work.length === 0) {
      const refused = owned === undefined ? [] : [...(await refusalsSince(world, owned)).values()];
      const leaders = [...now.leaders.values()];
      return { left, fromMs, toMs, ownedMs: owned?.sinceMs, refused: refused.reduce((sum, one) => sum + one, 0), leaders };
    }
  }
}

/** What should not lag any more. @param owned undefined while ownership is not as asked for @param isOver nothing may lag any more */
async function overdue(
  world: ChaosWorld,
  { mesh, work, leaders }: Laggards,
  owned: Owned | undefined,
  isOver: boolean,
): Promise<string[]> {
  if (owned === undefined) return [...mesh, ...wordsOf(work)];
  if (work.length === 0) return [];
  const askings = askingsOf(world.kube.audit(), world.kube.startedAtMs);
  const refusals = await refusalsSince(world, owned);
  const reasons = [...new Set(work.map((lag) => lag.owner))].flatMap((owner) => {
    const leader = leaders.get(owner);
    const refused = refusals.get(leader?.pod ?? "") ?? 0;
    const why = whyLate({ leader, askings, ownedMs: owned.sinceMs, refused, nowMs: Date.now() });
    const reason = why ?? (isOver ? "its informers have waited for longer than client-go may" : undefined);
    return reason === undefined ? [] : [`of ${owner === "" ? "the default subset" : owner}: ${reason}`];
  });
  return reasons.length === 0 ? [] : [...wordsOf(work), ...reasons];
}

function wordsOf(work: readonly Lag[]): string[] {
  const words = work.slice(0, MAX_NAMED).map((lag) => lag.words);
  return work.length > MAX_NAMED ? [...words, `and ${work.length - MAX_NAMED} more`] : words;
}

/** How many watches each pod's proxy has refused since it was started; a proxy that does not say is left out. */
async function refusalsOf({ pods }: ChaosWorld): Promise<Map<string, number>> {
  const told = [...pods.values()].map(async ({ name, healthUrl }): Promise<[string, number]> => {
    const metrics = await readMetrics(healthUrl);
    return [name, metrics.sum("ctrlmesh_proxy_decisions_total", { verb: "watch", reason: "list-again" })];
  });
  return new Map((await Promise.allSettled(told)).flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
}

async function refusalsSince(world: ChaosWorld, { refusals }: Owned): Promise<Map<string, number>> {
  const now = await refusalsOf(world);
  // One that was started since has none before.
  return new Map([...now].map(([pod, count]) => [pod, count - Math.min(count, refusals.get(pod) ?? 0)]));
}

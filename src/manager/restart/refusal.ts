// Turns the answer to an eviction into the time of the next attempt. Pure. Used by restarts and by rollouts.
import { backoffMs } from "../../base/backoff.ts";
import type { Random } from "../../base/clock.ts";
import type { Eviction } from "./evict.ts";
import type { Refusal } from "./restart-record.ts";

const RETRY = { baseMs: 1_000, maxMs: 15_000 };
const DOUBTED_MS = 5_000;

/**
 * The refusal; undefined if the eviction was accepted. A missing answer counts as a refusal.
 * @param attempts how often the eviction of this pod was refused before
 */
export function refusalBy(eviction: Eviction, attempts: number, nowMs: number, random: Random): Refusal | undefined {
  if (eviction.kind === "accepted" || eviction.kind === "gone") return undefined;
  const isUnknown = eviction.kind === "unknown";
  const leastMs = isUnknown ? DOUBTED_MS : (eviction.retryAfterMs ?? 0);
  const retryAtMs = nowMs + Math.max(leastMs, backoffMs(attempts, RETRY, random));
  return { reason: isUnknown ? "EvictionFailed" : eviction.reason, message: eviction.message, retryAtMs };
}

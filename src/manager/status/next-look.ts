// When a status says something else though no fact has changed: an age crosses its next step (ages.ts). Pure; the reconciler
// looks again then.
import type { AppStatus } from "../../api/app-status.ts";
import { ageMs, LOST_AFTER_MS, nextStepMs } from "./ages.ts";
import { conditionOf } from "./facts.ts";

/** Milliseconds until then, at least one; undefined if nothing in it grows older. */
export function nextLookMs(status: AppStatus, now: string): number | undefined {
  const { handover, proxies } = status;
  const converged = conditionOf(status, "Converged");
  const waits = (handover?.waitingOn ?? []).map(({ since }) => nextStepMs(since, now));
  const due = [
    ...waits,
    ...(converged?.reason === "Rebuilding"
      ? [nextStepMs(converged.lastTransitionTime, now), untilMs(converged.lastTransitionTime, LOST_AFTER_MS, now)]
      : []),
    ...(proxies?.awaySince === undefined ? [] : [untilMs(proxies.awaySince, LOST_AFTER_MS, now)]),
  ].filter((ms) => ms !== undefined);
  return due.length === 0 ? undefined : Math.max(1, Math.min(...due));
}

function untilMs(since: string, afterMs: number, now: string): number | undefined {
  const left = afterMs - ageMs(since, now);
  return left > 0 ? left : undefined;
}

// Writes the status with the restart's record, and then evicts. Invariant: no pod is evicted without its
// record in the status, nor over another manager's record, nor while a rollout evicts one.
import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { Result } from "../../runtime/reconciler.ts";
import type { StatusApp, StatusFeed } from "../status/status-feed.ts";
import { isEvicting } from "./evictor.ts";
import type { AppRestartFacts, Restarter } from "./restarter.ts";

export interface RestartTurn {
  readonly app: StatusApp;
  readonly facts: Omit<AppRestartFacts, "previous">;
  readonly restarter: Restarter;
  readonly statuses: StatusFeed;
  readonly makeStatus: (previous: AppStatus | undefined, now: string, restart: RestartStatus | undefined) => AppStatus;
}

// By then the watch has brought the record of the other manager, or the rollout waits for its pod.
const AGAIN_MS = 1_000;

export async function writeAndRestart(turn: RestartTurn, signal: AbortSignal): Promise<Result> {
  const { app, restarter, statuses, makeStatus } = turn;
  const before = statuses.previous(app)?.restart;
  const step = await restarter.next({ ...turn.facts, previous: before }, signal);
  const record = step.kind === "none" ? undefined : step.record;
  let isOurs = true;
  const make = (previous: AppStatus | undefined, now: string) => {
    isOurs = isSame(previous?.restart, before) && !(step.kind === "evict" && isEvicting(previous, "rollout"));
    return makeStatus(previous, now, isOurs ? record : previous?.restart);
  };
  const { isWritten, requeueAfterMs } = await statuses.write(app, make, signal);
  if (!isWritten) return soonest(requeueAfterMs); // the newer object is reconciled anyway
  if (!isOurs) return soonest(requeueAfterMs, AGAIN_MS);
  return soonest(requeueAfterMs, restarter.carryOut(app, step, signal).requeueAfterMs);
}

function isSame(a: RestartStatus | undefined, b: RestartStatus | undefined): boolean {
  return a?.uid === b?.uid && a?.expected === b?.expected && a?.reason === b?.reason;
}

export function soonest(...times: (number | undefined)[]): Result {
  const dueMs = times.filter((ms) => ms !== undefined);
  return dueMs.length === 0 ? {} : { requeueAfterMs: Math.min(...dueMs) };
}

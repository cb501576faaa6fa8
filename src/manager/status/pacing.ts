// What the status may show late, so that a birth of a namespace is one write and not one for each proxy that
// acknowledges it. Pure. Invariants: each delay has an end. Converged is never late to become True, nor to say that
// something moves, nor is anything that asks for a person's help.
import type { AppStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { conditionOf } from "./facts.ts";

export interface Paced {
  readonly status: AppStatus;
  /** The time until the present status is to be written; undefined: nothing of it is late. */
  readonly waitMs: number | undefined;
}

const HELD_EVERY_MS = 5_000;

/** Limits how often the status gets a new number of held namespaces, because each waiting request changes the number. */
export function paceHeld(before: AppStatus | undefined, status: AppStatus, sinceWrittenMs: number): Paced {
  const written = before?.namespaces?.held;
  const { namespaces } = status;
  if (written === undefined || namespaces === undefined || namespaces.held === written || sinceWrittenMs >= HELD_EVERY_MS)
    return { status, waitMs: undefined };
  return { status: { ...status, namespaces: { ...namespaces, held: written } }, waitMs: HELD_EVERY_MS - sinceWrittenMs };
}

/** Most proxies have acknowledged earlier. So the status is usually written only once, with Converged True. */
const FIRST_PROGRESS_MS = 5_000;
/** The same if the written status says already that proxies are behind. */
const NEXT_PROGRESS_MS = 30_000;

/** Delays a status that differs from `before` only by progress. @param waitedMs for how long that has been so */
export function paceProgress(before: AppStatus | undefined, status: AppStatus, waitedMs: number): Paced {
  if (before === undefined || !isProgress(before, status)) return { status, waitMs: undefined };
  const limitMs = conditionOf(before, "Converged")?.status === "True" ? FIRST_PROGRESS_MS : NEXT_PROGRESS_MS;
  return waitedMs >= limitMs ? { status, waitMs: undefined } : { status: before, waitMs: limitMs - waitedMs };
}

/** Without a handover, Moving is about other clusters. Its beginning is shown at once: until then a script would not wait for the move. */
const PROGRESS: ReadonlySet<string | undefined> = new Set(["ProxiesBehind", "Moving"]);

/** True if nothing differs but what changes while connected proxies acknowledge a route that moves nothing at home. */
function isProgress(before: AppStatus, status: AppStatus): boolean {
  const [was, is] = [before, status].map((each) => conditionOf(each, "Converged")?.reason);
  if (!PROGRESS.has(is) || !(PROGRESS.has(was) || (was === "InSync" && is === "ProxiesBehind"))) return false;
  return status.handover === undefined && isDeepEqual(withoutProgress(before), withoutProgress(status));
}

function withoutProgress(status: ShardingStatus): object {
  const { namespaces, proxies, subsets = [], conditions = [], ...rest } = status;
  return {
    ...rest,
    routeVersion: undefined,
    routeDigest: undefined,
    ownersHashes: undefined,
    shardNamespaces: undefined,
    balance: undefined,
    gaps: undefined,
    overlaps: undefined,
    namespaces: { ...namespaces, total: 0, gaps: undefined, held: 0 },
    proxies: { ...proxies, synced: 0 },
    subsets: subsets.map((subset) => ({ ...subset, namespaces: 0 })),
    conditions: conditions
      .filter(({ type }) => type !== "Converged")
      .map((condition) => (countsNamespaces(condition) ? { ...condition, message: "" } : condition)),
  };
}

/** True if only numbers in the message of the condition change, which nobody has to read at once. */
function countsNamespaces({ type, status }: Condition): boolean {
  return status === "True" || type === "Balanced";
}

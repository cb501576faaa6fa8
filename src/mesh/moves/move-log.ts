// Remembers which namespaces moved, each with a mark: a client that continues from that resourceVersion or an
// earlier one may not know of the move. Invariant: nothing is remembered of single clients, so a live watch,
// a resumed one and one of a second client are the same case. resource-log.ts says how marks are made.
import type { GroupResource } from "../../kube/types.ts";
import type { Enforced, EnforcedRoutes } from "../ownership/enforced.ts";
import { movesBetween } from "./moves-between.ts";
import { ResourceLog } from "./resource-log.ts";
import { LOST, type MovesMemory, type StoredMoves, UNMOVED } from "./stored-moves.ts";

export type MoveLog = ReturnType<typeof createMoveLog>;

/** Clients choose resources freely. */
const MAX_RESOURCES = 1_000;
/** Remembered names of namespaces that have left the table. */
const MAX_LEFT = 10_000;

/** What clients know of a resource without a log: nothing, what these routes showed, or what is forgotten. */
type Unrequested = "not-served" | Enforced | "lost";

export function createMoveLog(session: EnforcedRoutes, memory: MovesMemory) {
  const logs = new Map<string, ResourceLog>();
  const left = new Set<string>();
  let position = 0;
  let unrequested: Unrequested = "not-served";

  const create = (target: GroupResource): ResourceLog => {
    if (unrequested === "not-served") return new ResourceLog(left, position);
    if (unrequested === "lost") return new ResourceLog(left, position, LOST);
    const log = new ResourceLog(left, position, UNMOVED);
    if (session.current !== undefined && position > 0) log.take(movesBetween(unrequested, session.current).of(target), position);
    return log;
  };
  const add = (key: string, log: ResourceLog): ResourceLog => {
    logs.set(key, log);
    const [oldest] = logs.keys();
    if (logs.size <= MAX_RESOURCES || oldest === undefined) return log;
    logs.delete(oldest);
    unrequested = "lost";
    return log;
  };
  // Continues the logs that an earlier process has stored.
  const begin = (before: StoredMoves, routes: Enforced) => {
    unrequested = before.hasLostOthers ? "lost" : routes;
    for (const [key, stored] of before.resources) add(key, new ResourceLog(left, position, stored));
  };

  session.onChange((now, before) => {
    if (before === undefined) {
      if (memory.before !== undefined) begin(memory.before, now);
      return;
    }
    position++;
    const change = movesBetween(before, now);
    for (const [key, log] of logs) log.take(change.of(targetOf(key)), position);
    for (const name of change.removed) left.add(name);
    if (left.size <= MAX_LEFT) return;
    left.clear();
    for (const log of logs.values()) log.forgetNames();
  });
  memory.keep(() => {
    const hasLostOthers = unrequested === "lost" || (unrequested !== "not-served" && position > 0);
    return { resources: new Map([...logs].map(([key, log]) => [key, log.stored])), hasLostOthers };
  });

  return {
    /** Callers must not keep it: the log forgets the oldest resource when there are too many. */
    of(target: GroupResource): ResourceLog {
      const key = `${target.group}/${target.resource}`;
      return logs.get(key) ?? add(key, create(target));
    },
  };
}

function targetOf(key: string): GroupResource {
  const [group = "", resource = ""] = key.split("/");
  return { group, resource };
}

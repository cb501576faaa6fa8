// Remembers which namespaces moved, each with a mark: a client that continues from that resourceVersion or an
// earlier one may not know of the move. A watch that continues from a version asks what it has to be sent
// (`since`). Invariant: nothing is remembered of single clients, so a live watch, a resumed one and one of a
// second client are the same case.
//
// - A list, or a watch without a version, shows what the subset may read at that moment. The log notes its
//   version (`give`).
// - A snapshot marks each move with the highest version given so far. The client is sent the move if it
//   continues from that version or an earlier one. A list under way raises the marks of moves since its
//   request as soon as its version is known.
// - Events of unknown namespaces are held until their owner is known, so a new namespace is no move. It is
//   one only if something of it was left out meanwhile (`leaveOut`, `hideUnknown`).
// - The moves are stored with the snapshot. After a restart, a client that continues from a mark or below has
//   to list. The version for new moves is read from the API server when it is first needed (`learn`); until
//   then such a move is later than all versions.

import type { GroupResource } from "../../kube/types.ts";
import { LOST, type MovesMemory, type StoredMoves, UNMOVED } from "../session/memory.ts";
import type { Enforced, Session } from "../session/session.ts";
import { movesBetween } from "./moves-between.ts";
import { ResourceLog } from "./resource-log.ts";

export interface MoveLog {
  /**
   * The moves of one resource. They include a change of the routes before later listeners of the session hear
   * of it. Not to be kept: the log forgets the oldest resource when there are too many.
   */
  of(target: GroupResource): ResourceLog;
}

/** Bound of the resources that are remembered: a client may request any name. */
const MAX_RESOURCES = 1_000;
/** Bound of the remembered names of namespaces that have left the table. */
const MAX_LEFT = 10_000;

/**
 * What clients may know of a resource that is requested for the first time: nothing, since no earlier process
 * has served it; what these routes showed; or more than is remembered.
 */
type Unrequested = "not-served" | Enforced | "lost";

/** @param memory stores the moves with the snapshot */
export function createMoveLog(session: Pick<Session, "current" | "onChange">, memory: MovesMemory): MoveLog {
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
  // Continues the logs that an earlier process has stored, from its routes on.
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
    of(target) {
      const key = `${target.group}/${target.resource}`;
      return logs.get(key) ?? add(key, create(target));
    },
  };
}

function targetOf(key: string): GroupResource {
  const [group = "", resource = ""] = key.split("/");
  return { group, resource };
}

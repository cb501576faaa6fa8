// Remembers which namespaces moved, each with a mark: a client that continues from that resourceVersion or an earlier one may not know of
// the move. A watch that continues from a version asks what it has to be told (`since`). Invariant: nothing is remembered of single clients,
// so a live watch, a resumed one and one of a second client are the same case. Called by the filters and the layers.
//
// - A list, or a watch without a version, shows what the subset may read at that moment. The log notes its version (`given`).
// - A snapshot marks each move with the highest version given so far. The client is told of the move if it continues from that version or
//   an earlier one. A list under way raises the marks of moves since its request as soon as its version is known.
// - Events of unknown namespaces are held until their owner is known, so a new namespace is no move. It is one only if something of it was
//   left out meanwhile (`leaveOut`, `hidesUnknown`).
// - The moves are stored with the snapshot. After a restart, a client that continues from a mark or below has to list. The version for new moves is
//   read from the API server when it is first needed (`learn`); until then such a move is later than all versions.

import type { Version } from "../../kube/resource-version.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { Enforced, MoveKeeper, Session } from "../session/session.ts";
import { LOST, UNMOVED } from "../session/stored-moves.ts";
import type { Collection } from "./collection.ts";
import { movesBetween, type SnapshotChange } from "./moves-between.ts";
import { type Due, type Known, ResourceLog } from "./resource-log.ts";

export interface MoveLog {
  /** A client gets something of this version; undefined if the version is not known. */
  given(target: GroupResource, version: Version | undefined): void;
  /** A client continues from a version, wherever it got the version. */
  resumed(target: GroupResource, version: Version): void;
  /** A client is told what it missed, up to `version`, by events of these versions. */
  told(target: GroupResource, version: Version, events: readonly Version[]): void;
  /** Objects of an unknown namespace were left out. */
  leaveOut(target: GroupResource, namespace: string): void;
  /**
   * True if nobody waits for the owner of the unknown namespace: some of its objects were left out already, or it has left the table, most
   * often because it was deleted.
   */
  hasLeftOut(target: GroupResource, namespace: string): boolean;
  /** The API server is asked to leave out namespaces that are not known yet. */
  hidesUnknown(target: GroupResource): void;
  /** A list is sent. */
  beginList(target: GroupResource): OpenList;
  /** The number of changes so far. A client that is told now is told of all changes up to this number. */
  readonly position: number;
  /** What a client of the collection has to be told. */
  since(collection: Collection, known: Known): Due;
  /** True if the namespace was the subset's and has left the table: its DELETED events are still the client's. */
  isDeparted(target: GroupResource, namespace: string): boolean;
  /**
   * See `ResourceLog.learn`: undefined if `since` is certain; otherwise a function that takes the API server's version, as read
   * after this call.
   */
  learn(target: GroupResource): ((version: Version) => void) | undefined;
  /** Calls the listener after every change of the routes that the log has taken. Returns the unsubscription. */
  onChange(listener: () => void): () => void;
}

/** A list between its request and the end of its answer. */
export interface OpenList {
  /** The version is known; undefined if it cannot be read. Later calls do nothing. */
  answered(version: Version | undefined): void;
  /** It is over. Does nothing after `answered`. */
  end(): void;
}

/** Bound of the resources that are remembered: a client may request any name. */
const MAX_RESOURCES = 1_000;
/** Bound of the remembered names of namespaces that have left the table. */
const MAX_LEFT = 10_000;

/** @param keeper stores the moves with the snapshot */
export function createMoveLog(session: Pick<Session, "current" | "onChange">, keeper: MoveKeeper): MoveLog {
  const logs = new Map<string, ResourceLog>();
  const left = new Set<string>();
  const listeners = new Set<() => void>();
  let position = 0;
  /** The routes that an earlier process has stored. The log of a resource that is requested later starts with the moves since them. */
  let first: Enforced | undefined;
  let hasForgotten = false;

  const create = (key: string, { group, resource }: GroupResource): ResourceLog => {
    const before = keeper.movesBefore;
    if (hasForgotten || before === "lost") return new ResourceLog(LOST, position);
    if (before === "none") return new ResourceLog(undefined, position);
    const log = new ResourceLog(before.resources.get(key) ?? (before.hasLostOthers ? LOST : UNMOVED), position);
    if (first !== undefined && session.current !== undefined && first !== session.current)
      log.take(movesBetween(first, session.current).of(group, resource), position, () => false);
    return log;
  };
  const logOf = (target: GroupResource): ResourceLog => {
    const key = `${target.group}/${target.resource}`;
    let log = logs.get(key);
    if (log === undefined) {
      log = create(key, target);
      logs.set(key, log);
      const [oldest] = logs.keys();
      if (logs.size > MAX_RESOURCES && oldest !== undefined) {
        logs.delete(oldest);
        hasForgotten = true;
      }
    }
    return log;
  };

  const take = (change: SnapshotChange) => {
    for (const [key, log] of logs) {
      const { group, resource } = targetOf(key);
      log.take(change.of(group, resource), position, (name) => left.has(name));
    }
    for (const name of change.removed) left.add(name);
    if (left.size <= MAX_LEFT) return;
    left.clear();
    for (const log of logs.values()) log.forgetNames(position);
  };

  // Continues the logs that an earlier process has stored, from its routes on, also for resources that no client has requested yet.
  const begin = (now: Enforced) => {
    const { movesBefore } = keeper;
    if (movesBefore === "none") return;
    first = now;
    for (const key of movesBefore === "lost" ? [] : movesBefore.resources.keys()) logOf(targetOf(key));
  };

  session.onChange((now, before) => {
    if (before === undefined) {
      begin(now);
      return;
    }
    position++;
    take(movesBetween(before, now));
    const failures: unknown[] = [];
    for (const listener of [...listeners]) {
      try {
        if (listeners.has(listener)) listener();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
  keeper.keepMoves(() => {
    const { movesBefore } = keeper;
    const hasLost = movesBefore === "lost" || (movesBefore !== "none" && (movesBefore.hasLostOthers || position > 0));
    const resources = new Map([...logs].map(([key, log]) => [key, log.stored]));
    return { resources, hasLostOthers: hasForgotten || hasLost };
  });

  return {
    given: (target, version) => logOf(target).give(version),
    resumed: (target, version) => logOf(target).resume(version),
    told: (target, version, events) => logOf(target).tell(version, events, position),
    leaveOut: (target, namespace) => logOf(target).leaveOut(namespace),
    hasLeftOut: (target, namespace) => left.has(namespace) || logOf(target).hasLeftOut(namespace),
    hidesUnknown: (target) => logOf(target).hideUnknown(),
    beginList(target) {
      const log = logOf(target);
      const list = log.beginList(position);
      let isOpen = true;
      const once = (run: () => void) => {
        if (isOpen) run();
        isOpen = false;
      };
      return { answered: (version) => once(() => log.answered(list, version)), end: () => once(() => log.endList(list)) };
    },
    get position() {
      return position;
    },
    since: (collection, known) => logOf(collection).since(collection, known),
    isDeparted: (target, namespace) => logOf(target).isDeparted(namespace),
    learn: (target) => logOf(target).learn,
    onChange(listener) {
      // One entry for each call, so that the same function may be subscribed twice.
      const entry = () => listener();
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
  };
}

function targetOf(key: string): GroupResource {
  const [group = "", resource = ""] = key.split("/");
  return { group, resource };
}

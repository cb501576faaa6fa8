// Remembers the namespaces that left the route table, with the owner they had then, and compares the owner when they return. A
// namespace that is deleted and created again with another owner has objects before the manager names the new owner; those events
// were filtered by the old one. A namespace that is no longer remembered counts as changed. Called by resync.ts.
import type { Clock } from "../../base/clock.ts";
import { ownsUnknown } from "../../route/plan-query.ts";
import { readViewOf } from "../../route/snapshot.ts";
import type { Enforced } from "../session/session.ts";
import type { Collection } from "./collection.ts";
import { classKey, type RouteChange, UNTOUCHED, type ViewChange } from "./view-change.ts";

export interface GoneNamespaces {
  /** Applies a change. Returns the changes for a collection since its namespaces left. */
  settle(change: RouteChange, before: Enforced, now: Enforced): (collection: Collection) => ViewChange;
}

export interface GoneBounds {
  /** How many past snapshots are kept. Each has a table of all namespaces. */
  readonly maxSnapshots?: number;
  readonly maxNames?: number;
}

/**
 * The old owner filtered events only in the seconds before the manager removed the namespace, and the manager names it again
 * within about the same time. Only a snapshot ends a memory, so that the memory outlasts an absent manager.
 */
const REMEMBERED_MS = 10 * 60_000;

/** The namespaces that left with one snapshot. */
interface Departure {
  /** The snapshot before it; undefined if too many snapshots came since. */
  was: Enforced | undefined;
  readonly atMs: number;
}

type Reborn = readonly [namespace: string, was: Enforced | undefined];

export function createGoneNamespaces(clock: Clock, { maxSnapshots = 16, maxNames = 10_000 }: GoneBounds = {}): GoneNamespaces {
  // Both have the oldest entry first.
  const gone = new Map<string, Departure>();
  const departures: Departure[] = [];
  // Until this time any name may be missing from memory.
  let forgottenUntilMs = Number.NEGATIVE_INFINITY;

  const takeReborn = (born: readonly string[]): Reborn[] =>
    born.flatMap((name) => {
      const departure = gone.get(name);
      if (departure === undefined && clock.monotonicMs() >= forgottenUntilMs) return [];
      gone.delete(name);
      return [[name, departure?.was]];
    });

  const expire = () => {
    const isOld = ({ atMs }: Departure) => clock.monotonicMs() - atMs >= REMEMBERED_MS;
    for (const [name, departure] of gone) {
      if (!isOld(departure) && gone.size <= maxNames) break;
      if (!isOld(departure)) forgottenUntilMs = departure.atMs + REMEMBERED_MS;
      gone.delete(name);
    }
    while (departures[0] !== undefined && (isOld(departures[0]) || departures.length > maxSnapshots)) {
      departures[0].was = undefined;
      departures.shift();
    }
  };

  return {
    settle({ born, removed }, before, now) {
      const reborn = takeReborn(born);
      const hadGone = gone.size > 0;
      if (removed.length > 0) {
        const departure: Departure = { was: before, atMs: clock.monotonicMs() };
        departures.push(departure);
        for (const name of removed) gone.set(name, departure);
      }
      expire();
      return reborn.length === 0 && !hadGone ? () => UNTOUCHED : compareWith(reborn, hadGone, before, now);
    },
  };
}

function compareWith(reborn: readonly Reborn[], hadGone: boolean, before: Enforced, now: Enforced) {
  const byName = new Map(reborn);
  const samples = sample(reborn, now);
  return ({ group, resource, namespace }: Collection): ViewChange => {
    const view = readViewOf(now.view(group, resource));
    const compare = ([name, was]: Reborn): ViewChange => {
      if (was === undefined) return { gained: true, lost: true };
      const [wasMine, isMine] = [readViewOf(was.view(group, resource)), view].map((each) => each.ownershipOf(name) === "own");
      return { gained: wasMine !== true && isMine === true, lost: wasMine === true && isMine !== true };
    };
    if (namespace !== "" && byName.has(namespace)) return compare([namespace, byName.get(namespace)]);
    // Unknown namespaces that another subset owned when they left, and that this subset owns now.
    let gained = hadGone && ownsUnknown(view) && !ownsUnknown(before.view(group, resource));
    let lost = false;
    for (const each of namespace === "" ? samples : []) {
      const change = compare(each);
      gained ||= change.gained;
      lost ||= change.lost;
    }
    return { gained, lost };
  };
}

// One entry for each pair of classes, as in view-change.ts.
function sample(reborn: readonly Reborn[], now: Enforced): readonly Reborn[] {
  const samples = new Map<Enforced | undefined, Map<string, Reborn>>();
  for (const each of reborn) {
    const [name, was] = each;
    const pair = was === undefined ? "" : `${classKey(was, name)}>${classKey(now, name)}`;
    const ofSnapshot = samples.get(was) ?? new Map<string, Reborn>();
    samples.set(was, ofSnapshot.set(pair, each));
  }
  return [...samples.values()].flatMap((pairs) => [...pairs.values()]);
}

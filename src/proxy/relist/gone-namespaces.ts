// Remembers the namespaces that vanished from the table, as they stood then, and compares once they are born again. A namespace
// that is deleted and made anew under another owner has objects before the manager has said so: those were judged by the owner
// that it had before. Invariant: what cannot be remembered any more counts as changed. Called by resync.ts.
import type { Clock } from "../../base/clock.ts";
import { ownsUnknown } from "../../route/plan-query.ts";
import { readViewOf } from "../../route/snapshot.ts";
import type { Enforced } from "../session/session.ts";
import type { Collection } from "./resync.ts";
import { classKey, type RouteChange, UNTOUCHED, type ViewChange } from "./view-change.ts";

export interface GoneNamespaces {
  /** Takes a change in. Returns what it changes for a collection against the time before its namespaces had gone. */
  settle(change: RouteChange, before: Enforced, now: Enforced): (collection: Collection) => ViewChange;
}

export interface GoneBounds {
  /** Snapshots of the past that are kept; each has a table of all namespaces. */
  readonly maxSnapshots?: number;
  readonly maxNames?: number;
}

/**
 * What was judged by the old owner was judged in the seconds before the manager said that the namespace was gone, and the
 * manager names it within as much again. Only a snapshot ends a memory, so that it outlasts a manager that is away.
 */
const REMEMBERED_MS = 10 * 60_000;

/** The namespaces that went with one snapshot. */
interface Departure {
  /** The snapshot before; undefined where too many came since. */
  was: Enforced | undefined;
  readonly atMs: number;
}

type Reborn = readonly [namespace: string, was: Enforced | undefined];

export function createGoneNamespaces(clock: Clock, { maxSnapshots = 16, maxNames = 10_000 }: GoneBounds = {}): GoneNamespaces {
  // Oldest first, both of them.
  const gone = new Map<string, Departure>();
  const departures: Departure[] = [];
  // Names had to be forgotten: until then it may be any.
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
    // Whose nobody knows are the subset's now, those among them that were another's when they went.
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

// One for each pair of classes, as in view-change.ts.
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

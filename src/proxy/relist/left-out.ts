// Remembers the namespaces whose objects were left out of a list or watch because their owner was unknown or they were moving. A
// note stays until the owner is known, or the manager has had enough time to name it; beyond the bound of notes every namespace
// counts. Called by the filters; resync.ts makes the client list again once the subset owns the namespace.
import type { Clock } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";
import { intersectRanges, isInRanges, type ShardRange } from "../../route/shard-ranges.ts";
import { type ResourceView, readViewOf } from "../../route/snapshot.ts";
import type { Enforced } from "../session/session.ts";

export interface LeftOut {
  note(target: GroupResource, namespace: string): void;
  /** The API server sent only this namespace, so everything else was left out unseen. */
  noteOnly(target: GroupResource, namespace: string): void;
  /** The API server left out these namespaces, so they were left out unseen. They may disappear and return as the subset's. */
  noteExcluded(target: GroupResource, namespaces: readonly string[]): void;
  /** The API server sent only these hash ranges, so everything outside was left out unseen. */
  noteRanges(target: GroupResource, ranges: readonly ShardRange[]): void;
  /** True if objects of the namespace were or may have been left out. Beyond the bound that is every namespace. */
  has(target: GroupResource, namespace: string): boolean;
  /**
   * Removes the notes that the new snapshot resolves.
   * @param born the namespaces that the previous snapshot did not have
   */
  settle(now: Enforced, born: readonly string[]): Granted;
}

/** The namespaces that were left out and now belong to the subset. */
export interface Granted {
  /** True if a resource has gained a namespace; `namespace` "" means any. */
  has(group: string, resource: string, namespace: string): boolean;
  /**
   * The gained namespaces that were noted by name; undefined if any may be gained. A namespace that became the subset's in this
   * change may be missing.
   */
  namesOf(group: string, resource: string): ReadonlySet<string> | undefined;
}

const NO_NAMES: ReadonlySet<string> = new Set();

/** An attacker who creates namespaces must not fill the memory. */
const MAX_NOTES = 10_000;
/** For one resource. More, after many changes of the routes, count as "nothing was shown". */
const MAX_RANGES = 1_000;
/** For one resource. More, of namespaces that came and went, count as "all were left out". */
const MAX_EXCLUDED = 1_000;
/**
 * A snapshot has every namespace that the manager knew seconds ago. If objects of a namespace were seen this long before and the
 * snapshot lacks it, the namespace was deleted before the manager saw it. If it returns, its objects are new, and their events
 * are held or noted again. Only a snapshot ends a note, so notes outlast an absent manager.
 */
const UNNAMED_MS = 10 * 60_000;

interface Notes {
  readonly target: GroupResource;
  /** For each namespace the time when an object was last left out of it. */
  readonly since: Map<string, number>;
}

interface ListedRanges {
  readonly target: GroupResource;
  /** The part that every list since the last removal of notes has shown. */
  readonly ranges: readonly ShardRange[];
  /** Added last, so that a repeated plan costs nothing. */
  readonly last: readonly ShardRange[];
}

interface Excluded {
  readonly target: GroupResource;
  readonly namespaces: Set<string>;
}

export function createLeftOut(clock: Clock, maxNotes = MAX_NOTES): LeftOut {
  const notes = new Map<string, Notes>();
  const onlys = new Map<string, { readonly target: GroupResource; readonly only: string }>();
  const listedRanges = new Map<string, ListedRanges>();
  const excluded = new Map<string, Excluded>();
  let count = 0;
  // A note was lost: until the next snapshot any namespace may have been left out.
  let overflowed = false;

  const hasRoom = () => {
    overflowed ||= count >= maxNotes;
    if (!overflowed) count++;
    return !overflowed;
  };

  const takeSettled = ({ since }: Notes, view: ResourceView): Set<string> => {
    const mine = new Set<string>();
    for (const [namespace, atMs] of since) {
      const ownership = view.ownershipOf(namespace);
      if (ownership === "moving" || (ownership === "unknown" && clock.monotonicMs() - atMs < UNNAMED_MS)) continue;
      since.delete(namespace);
      count--;
      if (ownership === "own") mine.add(namespace);
    }
    return mine;
  };

  // A known namespace is gained when it becomes the subset's. An unknown one is gained if it had been left out.
  const takeExcluded = ({ target, namespaces }: Excluded, now: Enforced, born: readonly string[]): string[] => {
    const view = viewOf(now, target);
    const isAny = namespaces.size > MAX_EXCLUDED;
    const mine = (isAny ? [...born, ...namespaces] : [...namespaces]).filter((name) => view.ownershipOf(name) === "own");
    // Beyond the bound all clients list again, so that nothing stays left out.
    for (const name of isAny && mine.length > 0 ? [...namespaces] : mine) if (namespaces.delete(name)) count--;
    return mine;
  };

  return {
    note({ group, resource }, namespace) {
      const key = keyOf(group, resource);
      const entry = notes.get(key);
      if (entry?.since.has(namespace) !== true && !hasRoom()) return;
      if (entry === undefined)
        notes.set(key, { target: { group, resource }, since: new Map([[namespace, clock.monotonicMs()]]) });
      else entry.since.set(namespace, clock.monotonicMs());
    },
    noteOnly({ group, resource }, only) {
      const key = `${keyOf(group, resource)}/${only}`;
      if (onlys.has(key) || hasRoom()) onlys.set(key, { target: { group, resource }, only });
    },
    noteExcluded({ group, resource }, namespaces) {
      if (namespaces.length === 0) return;
      const key = keyOf(group, resource);
      const entry = excluded.get(key) ?? { target: { group, resource }, namespaces: new Set<string>() };
      excluded.set(key, entry);
      for (const name of namespaces) {
        if (entry.namespaces.size > MAX_EXCLUDED || entry.namespaces.has(name) || !hasRoom()) continue;
        entry.namespaces.add(name);
      }
    },
    noteRanges(target, ranges) {
      const key = keyOf(target.group, target.resource);
      const before = listedRanges.get(key);
      if (before?.last === ranges || (before === undefined && !hasRoom())) return;
      const both = before === undefined ? ranges : intersectRanges(before.ranges, ranges);
      const { group, resource } = target;
      listedRanges.set(key, { target: { group, resource }, ranges: both.length > MAX_RANGES ? [] : both, last: ranges });
    },
    has: (target, namespace) => overflowed || (notes.get(keyOf(target.group, target.resource))?.since.has(namespace) ?? false),
    settle(now, born) {
      const everything = overflowed;
      overflowed = false;
      const gained = new Map<string, Set<string>>();
      for (const [key, entry] of notes) {
        const mine = takeSettled(entry, viewOf(now, entry.target));
        if (mine.size > 0) gained.set(key, mine);
        if (entry.since.size === 0) notes.delete(key);
      }
      for (const [key, { target, only }] of onlys) {
        const view = viewOf(now, target);
        if (!view.ownsAll && view.namespaces().own.every((namespace) => namespace === only)) continue;
        onlys.delete(key);
        count--;
        const resourceKey = keyOf(target.group, target.resource);
        gained.set(resourceKey, gained.get(resourceKey) ?? new Set());
      }
      for (const [key, { target, ranges }] of listedRanges) {
        const view = viewOf(now, target);
        // A known namespace is gained when it becomes the subset's.
        const mine = born.filter((namespace) => view.ownershipOf(namespace) === "own");
        if (mine.every((namespace) => isInRanges(ranges, namespace))) continue;
        listedRanges.delete(key);
        count--;
        gained.set(key, gained.get(key) ?? new Set());
      }
      for (const [key, entry] of excluded) {
        const mine = takeExcluded(entry, now, born);
        if (mine.length > 0) gained.set(key, new Set([...(gained.get(key) ?? []), ...mine]));
        if (entry.namespaces.size === 0) excluded.delete(key);
      }
      return {
        has(group, resource, namespace) {
          if (everything) return true;
          const mine = gained.get(keyOf(group, resource));
          return mine !== undefined && (namespace === "" || mine.has(namespace));
        },
        namesOf: (group, resource) => (everything ? undefined : (gained.get(keyOf(group, resource)) ?? NO_NAMES)),
      };
    },
  };
}

function viewOf(now: Enforced, { group, resource }: GroupResource): ResourceView {
  return readViewOf(now.view(group, resource));
}

function keyOf(group: string, resource: string): string {
  return `${group}/${resource}`;
}

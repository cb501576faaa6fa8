// Which slices an app has, from who owns its places and from the slices that it had. Pure. Invariants: each place is in one
// slice, and stays there, so a move writes the slice of its place; no two slices would fit into one, so there are less than
// twice as many as needed; nothing is written if nothing has changed.
import { isDeepStrictEqual } from "node:util";
import { MAX_PLACES } from "../../api/ownership-slice.ts";
import type { Ownership } from "./place-ownership.ts";

/** The ownership of a place since a time (RFC 3339, whole seconds). */
export type DatedOwnership = Ownership & { readonly since: string };

export interface Slice {
  readonly name: string;
  /** A place that is in two entries counts once. */
  readonly entries: readonly SliceEntry[];
}

export interface SliceEntry {
  readonly ownership: DatedOwnership;
  readonly places: readonly string[];
}

export interface Packing {
  /** To be created, or to be written as they are now. */
  readonly written: readonly Slice[];
  /** The names of slices to be deleted, once the others are written. */
  readonly deleted: readonly string[];
}

interface Draft {
  readonly name: string;
  places: string[];
  isChanged: boolean;
}

/** @param newName a name for a new slice; @param taken the names that exist */
export function packSlices(
  previous: readonly Slice[],
  ownership: ReadonlyMap<string, Ownership>,
  now: string,
  newName: (taken: ReadonlySet<string>) => string,
): Packing {
  const dated = createDates(previous, ownership, now);
  const { drafts, unplaced } = draftsOf(previous, ownership, dated.hasChanged);
  place(drafts, unplaced, newName);
  merge(drafts);
  const kept = drafts.filter(({ places }) => places.length > 0);
  const names = new Set(kept.map(({ name }) => name));
  return {
    written: kept.flatMap(({ name, places, isChanged }) => (isChanged ? [{ name, entries: dated.entriesOf(places) }] : [])),
    deleted: previous.flatMap(({ name }) => (names.has(name) ? [] : [name])),
  };
}

/** Each slice with the places that it keeps, and the places that no slice has yet. */
function draftsOf(
  previous: readonly Slice[],
  ownership: ReadonlyMap<string, Ownership>,
  hasChanged: (place: string) => boolean,
): { readonly drafts: Draft[]; readonly unplaced: string[] } {
  const placed = new Set<string>();
  const drafts = previous.map(({ name, entries }): Draft => {
    const all = entries.flatMap(({ places }) => places);
    const places: string[] = [];
    let isChanged = false;
    for (const each of all) {
      const isKept = ownership.has(each) && !placed.has(each) && places.length < MAX_PLACES;
      if (isKept) places.push(each);
      if (isKept) placed.add(each);
      isChanged ||= !isKept || hasChanged(each);
    }
    return { name, places, isChanged };
  });
  return { drafts, unplaced: [...ownership.keys()].filter((each) => !placed.has(each)) };
}

/** Puts places into slices that are written anyhow, then into the emptiest ones, then into new ones. */
function place(drafts: Draft[], unplaced: readonly string[], newName: (taken: ReadonlySet<string>) => string): void {
  const free = drafts.filter(({ places }) => places.length < MAX_PLACES);
  free.sort((a, b) => Number(b.isChanged) - Number(a.isChanged) || a.places.length - b.places.length);
  const taken = new Set(drafts.map(({ name }) => name));
  for (let at = 0; at < unplaced.length; ) {
    const draft = free.shift() ?? { name: newName(taken), places: [], isChanged: true };
    if (!taken.has(draft.name)) drafts.push(draft);
    taken.add(draft.name);
    const room = MAX_PLACES - draft.places.length;
    draft.places.push(...unplaced.slice(at, at + room));
    draft.isChanged = true;
    at += room;
  }
}

/**
 * Empties slices into smaller ones, until no two fit into one. From the smallest on each goes into the one before, if it
 * fits: if it does not, no later one would.
 */
function merge(drafts: readonly Draft[]): void {
  let into: Draft | undefined;
  for (const draft of drafts.filter(({ places }) => places.length > 0).sort((a, b) => a.places.length - b.places.length)) {
    if (into === undefined || into.places.length + draft.places.length > MAX_PLACES) {
      into = draft;
      continue;
    }
    into.places.push(...draft.places);
    into.isChanged = true;
    draft.places = [];
  }
}

/** Since when each place has its ownership: a time of the slices, or now. */
function createDates(previous: readonly Slice[], ownership: ReadonlyMap<string, Ownership>, now: string) {
  const before = new Map<string, DatedOwnership>();
  for (const { entries } of previous)
    for (const each of entries) for (const name of each.places) if (!before.has(name)) before.set(name, each.ownership);
  const datedAs = remembered((after: Ownership) =>
    remembered((was: DatedOwnership | undefined): DatedOwnership => {
      const { since: _, ...old } = was ?? { since: now };
      if (was !== undefined && isDeepStrictEqual(old, after)) return was;
      return { ...after, since: was !== undefined && isSameOwner(was, after) ? was.since : now };
    }),
  );
  const dated = (name: string) => {
    const after = ownership.get(name);
    return after && datedAs(after)(before.get(name));
  };
  return {
    hasChanged: (name: string) => before.get(name) !== dated(name),
    entriesOf(places: readonly string[]): SliceEntry[] {
      const byText = new Map<string, { readonly ownership: DatedOwnership; readonly places: string[] }>();
      const textOf = remembered((each: DatedOwnership) => JSON.stringify(each));
      for (const name of [...places].sort()) {
        const current = dated(name);
        if (current === undefined) continue;
        const entry = byText.get(textOf(current)) ?? { ownership: current, places: [] };
        byText.set(textOf(current), entry);
        entry.places.push(name);
      }
      return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
    },
  };
}

// A fence that comes and goes while a new leader hears of the pods changes no owner.
function isSameOwner(was: Ownership, is: Ownership): boolean {
  const isOwnerSame = isDeepStrictEqual(was.owners, is.owners);
  return (
    isOwnerSame && (was.state === "Moving") === (is.state === "Moving") && (was.state === "Unowned") === (is.state === "Unowned")
  );
}

function remembered<A, R>(of: (key: A) => R): (key: A) => R {
  const known = new Map<A, R>();
  return (key) => {
    const result = known.has(key) ? (known.get(key) as R) : of(key);
    known.set(key, result);
    return result;
  };
}

// Which slices an app has, from who owns its places and from the slices that it had. Pure. Invariants: each place is in one
// slice, and stays there, so a move writes the slice of its place. No two slices would fit into one, so there are less than
// twice as many as needed. Nothing is written if nothing has changed.
import { isDeepStrictEqual } from "node:util";
import { MAX_PLACES } from "../../api/ownership-slice.ts";
import { remember } from "../../base/remember.ts";
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

/** @param newName a name for a new slice, from the names that exist */
export function packSlices(
  previous: readonly Slice[],
  ownership: ReadonlyMap<string, Ownership>,
  now: string,
  newName: (taken: ReadonlySet<string>) => string,
): Packing {
  const { drafts, dated, unplaced } = draftsOf(previous, ownership, now);
  place(drafts, unplaced, newName);
  merge(drafts);
  const kept = drafts.filter(({ places }) => places.length > 0);
  const names = new Set(kept.map(({ name }) => name));
  return {
    written: kept.flatMap(({ name, places, isChanged }) => (isChanged ? [{ name, entries: entriesOf(places, dated) }] : [])),
    deleted: previous.flatMap(({ name }) => (names.has(name) ? [] : [name])),
  };
}

/** Each slice with the places that it keeps, since when each place has its owner, and the places that no slice has yet. */
function draftsOf(previous: readonly Slice[], ownership: ReadonlyMap<string, Ownership>, now: string) {
  const dated = new Map<string, DatedOwnership>();
  const dateOf = createDates(now);
  const drafts = previous.map(({ name, entries }): Draft => {
    const draft: Draft = { name, places: [], isChanged: false };
    for (const entry of entries) {
      for (const each of entry.places) {
        const after = ownership.get(each);
        if (after === undefined || dated.has(each) || draft.places.length >= MAX_PLACES) {
          draft.isChanged = true;
          continue;
        }
        const current = dateOf(after, entry.ownership);
        dated.set(each, current);
        draft.places.push(each);
        draft.isChanged ||= current !== entry.ownership;
      }
    }
    return draft;
  });
  const unplaced: string[] = [];
  for (const [each, after] of ownership) {
    if (dated.has(each)) continue;
    dated.set(each, dateOf(after, undefined));
    unplaced.push(each);
  }
  return { drafts, dated, unplaced };
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

/** The ownership of a place with its time: the object that it had, if nothing has changed. */
function createDates(now: string): (after: Ownership, was: DatedOwnership | undefined) => DatedOwnership {
  const known = new Map<Ownership, Map<DatedOwnership | undefined, DatedOwnership>>();
  return (after, was) => {
    const pairs = known.get(after) ?? new Map<DatedOwnership | undefined, DatedOwnership>();
    known.set(after, pairs);
    const dated = pairs.get(was) ?? datedOwnership(after, was, now);
    pairs.set(was, dated);
    return dated;
  };
}

function datedOwnership(after: Ownership, was: DatedOwnership | undefined, now: string): DatedOwnership {
  if (was === undefined) return { ...after, since: now };
  const { since, ...before } = was;
  if (isDeepStrictEqual(before, after)) return was;
  return { ...after, since: isSameOwner(was, after) ? since : now };
}

function entriesOf(places: readonly string[], dated: ReadonlyMap<string, DatedOwnership>): SliceEntry[] {
  const textOf = remember((ownership: DatedOwnership) => JSON.stringify(ownership));
  const byText = new Map<string, { readonly ownership: DatedOwnership; readonly places: string[] }>();
  for (const name of [...places].sort()) {
    const ownership = dated.get(name);
    if (ownership === undefined) continue;
    const text = textOf(ownership);
    const entry = byText.get(text) ?? { ownership, places: [] };
    byText.set(text, entry);
    entry.places.push(name);
  }
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}

// A fence that comes and goes while a new leader hears of the pods changes no owner.
function isSameOwner(was: Ownership, is: Ownership): boolean {
  const isOwnerSame = isDeepStrictEqual(was.owners, is.owners);
  return (
    isOwnerSame && (was.state === "Moving") === (is.state === "Moving") && (was.state === "Unowned") === (is.state === "Unowned")
  );
}

// The slices of an app in parts: one for home and whole clusters, and one for the inside of each other cluster. Pure. Invariants: a slice
// has places of one part, so what happens in one cluster is packed and written without looking at the places of the others; a part in
// which nothing has changed is not packed.
import { insideOfPlace } from "./inside-ownership.ts";
import { type Packing, packSlices, type Slice } from "./pack-slices.ts";
import type { Ownership } from "./place-ownership.ts";

/** The part of home. Those of other clusters have their names. */
export const AT_HOME = "";

/** By part and place. */
export type OwnedParts = ReadonlyMap<string, ReadonlyMap<string, Ownership>>;

/**
 * @param previous all slices of the app
 * @param isPacked true for a part whose slices are as its places are
 * @param newName a name for a new slice, from the names that exist
 */
export function packParts(
  previous: readonly Slice[],
  parts: OwnedParts,
  now: string,
  isPacked: (part: string) => boolean,
  newName: (taken: ReadonlySet<string>) => string,
): Packing {
  const byPart = Map.groupBy(previous, partOf);
  const taken = new Set(previous.map(({ name }) => name));
  const takeName = () => {
    const name = newName(taken);
    taken.add(name);
    return name;
  };
  const packings = [...new Set([...parts.keys(), ...byPart.keys()])]
    .filter((part) => !isPacked(part))
    .map((part) => packSlices(byPart.get(part) ?? [], parts.get(part) ?? new Map(), now, takeName));
  return {
    written: packings.flatMap(({ written }) => written),
    deleted: packings.flatMap(({ deleted }) => deleted),
  };
}

/** Another program may have mixed them. Then each place is written again where it belongs. */
function partOf({ entries }: Slice): string {
  const first = entries.flatMap(({ places }) => places.slice(0, 1))[0];
  return (first === undefined ? undefined : insideOfPlace(first)?.cluster) ?? AT_HOME;
}

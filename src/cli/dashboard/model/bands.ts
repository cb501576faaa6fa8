// The ownership map of one app: a band for each subset, with a cell for each of its places. Pure. Invariant: no owner is computed. A place
// that moves has two cells: one where it arrives, and one where pods may still write.
import type { OwnershipEntry } from "../../../api/ownership-slice.ts";
import type { SlicePart } from "./parts.ts";

export interface Cell {
  readonly place: string;
  /** `arriving` and `leaving`: it moves. `fenced`: the manager does not know yet what pods may write. */
  readonly state: "owned" | "frozen" | "arriving" | "leaving" | "fenced" | "unowned";
  /** Where it comes from, or goes to. */
  readonly others: readonly string[];
  /** True if another subset owns some of its resources. */
  readonly isShared: boolean;
  readonly since: string;
  /** NaN for a time that cannot be read. */
  readonly sinceMs: number;
}

export interface Band {
  readonly name: string;
  readonly cells: readonly Cell[];
  readonly moving: number;
}

export function isMoving({ state }: Pick<Cell, "state">): boolean {
  return state === "arriving" || state === "leaving" || state === "fenced";
}

/** The band of what nobody owns. No subset can have this name. */
export const NOBODY = "(nobody)";

const CLUSTER_SCOPE = "(cluster scope)";

/**
 * @param subsets in the order of the bands; bands of others follow
 * @param filter only places with this text in their name
 */
export function bandsOf(slices: readonly SlicePart[], subsets: readonly string[], filter = ""): Band[] {
  const cells = new Map<string, Cell[]>(subsets.map((name) => [name, []]));
  const add = (band: string, cell: Cell) => {
    const found = cells.get(band);
    if (found === undefined) cells.set(band, [cell]);
    else found.push(cell);
  };
  for (const { entries } of slices) for (const entry of entries) addEntry(entry, filter, add);
  return [...cells].map(([name, of]) => ({
    name,
    cells: of.sort((a, b) => (a.place < b.place ? -1 : 1)),
    moving: of.filter(isMoving).length,
  }));
}

function addEntry(entry: OwnershipEntry, filter: string, add: (band: string, cell: Cell) => void): void {
  const { state, owners = [], from = [], since } = entry;
  const names = [...new Set(owners.map(({ subset }) => subset ?? NOBODY))];
  const places = placesOf(entry).filter((place) => place.includes(filter));
  const bands = state === "Unowned" || names.length === 0 ? [NOBODY] : names;
  const isShared = bands.length > 1;
  const there = ({ Owned: "owned", Frozen: "frozen", Moving: "arriving", Fenced: "fenced", Unowned: "unowned" } as const)[state];
  const sinceMs = Date.parse(since);
  const leaving = from.filter((name) => !bands.includes(name));
  for (const place of places) {
    for (const band of bands) add(band, { place, state: there, others: from, isShared, since, sinceMs });
    for (const band of leaving) add(band, { place, state: "leaving", others: bands, isShared, since, sinceMs });
  }
}

function placesOf({ clusters = [], insideClusters = [], ...atHome }: OwnershipEntry): string[] {
  return [
    ...placesIn(atHome),
    ...clusters.map((cluster) => `(cluster ${cluster})`),
    ...insideClusters.flatMap(({ cluster, ...inside }) => placesIn(inside).map((place) => `${cluster}/${place}`)),
  ];
}

type PlaceFields = Pick<OwnershipEntry, "namespaces" | "buckets" | "clusterScope">;

function placesIn({ namespaces = [], buckets = [], clusterScope = false }: PlaceFields): string[] {
  return [...namespaces, ...(clusterScope ? [CLUSTER_SCOPE] : []), ...buckets.map((bucket) => `(cluster scope, hash ${bucket})`)];
}

const STATES: Readonly<Record<Cell["state"], (others: string) => string>> = {
  owned: () => "owned",
  frozen: () => "owned, but nobody may write: a person has frozen it",
  arriving: (others) => `moving here from ${others}, whose pods may still write`,
  leaving: (others) => `moving to ${others}; pods here may still write`,
  fenced: () => "nobody may write yet: the manager waits for the pods' reports",
  unowned: () => "nobody may write",
};

export function cellText({ place, state, others, isShared }: Cell): string {
  const shared = isShared ? "; subsets divide its resources" : "";
  return `${place}: ${STATES[state](others.join(", ") || "another subset")}${shared}`;
}

// The app of the model: two namespaces, and who is to own them.

import { type ResourceView, type Snapshot, viewOf } from "../../src/mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { subset, table } from "../support/route-table.ts";

export const PLACES = ["a", "b"];
export const BLUE = "blue";
export const SUBSETS = [DEFAULT_SUBSET, BLUE];
export const APP = { namespace: "shop", name: "app" };

/** The owner of each place. */
export const WISHES: readonly (readonly string[])[] = [
  [DEFAULT_SUBSET, DEFAULT_SUBSET],
  [BLUE, DEFAULT_SUBSET],
  [DEFAULT_SUBSET, BLUE],
];

const RULES = [subset(BLUE)];
const TABLES: readonly RouteTable[] = WISHES.map((owners) =>
  table(RULES, Object.fromEntries(PLACES.map((place, index) => [place, owners[index] === BLUE ? [0] : []]))),
);

export function tableOf(wish: number): RouteTable {
  const found = TABLES[wish];
  if (found === undefined) throw new Error(`there is no wish ${wish}`);
  return found;
}

const views = new WeakMap<Snapshot, ResourceView>();

/** True if the routes allow their subset to write in the place. */
export function allows(routes: Snapshot | undefined, place: string): boolean {
  if (routes === undefined) return false;
  const view = views.get(routes) ?? viewOf(routes, "", "configmaps");
  views.set(routes, view);
  return view.ownershipOf(place) === "own";
}

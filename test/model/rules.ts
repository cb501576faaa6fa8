// The app of the model: two places, and who is to own them. A place is a namespace or another cluster.

import { remember } from "../../src/base/remember.ts";
import { type ClusterRoute, mayReach } from "../../src/mesh/ownership/clusters.ts";
import { type ResourceView, type Snapshot, viewOf } from "../../src/mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../../src/mesh/ownership/table.ts";
import { subset, table } from "../support/route-table.ts";

export const NAMESPACES: readonly string[] = ["a", "b"];
export const NAMESPACE_AND_CLUSTER: readonly string[] = ["a", "@eu"];
/** Longer than writes of a killed process take at home, so that the model finds a proxy that takes the one for the other. */
export const DRAIN_MS = 15_000;
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

/** True if the place is another cluster. */
export function isAbroad(place: string): boolean {
  return place.startsWith("@");
}

/** What the rules of the app say, by the wish. Planning remembers by object, so each is made once. */
export const rulesBy = remember((places: readonly string[]) =>
  WISHES.map((owners) => {
    const owned = places.map((place, index) => ({ place, owner: owners[index] ?? DEFAULT_SUBSET }));
    const namespaces = owned.filter(({ place }) => !isAbroad(place));
    const clusters = owned.flatMap(({ place, owner }): ClusterRoute[] =>
      isAbroad(place) ? [{ name: place, servers: [serverIn(place)], drainMs: DRAIN_MS, owner }] : [],
    );
    return {
      bySpec: table(RULES, Object.fromEntries(namespaces.map(({ place, owner }) => [place, owner === BLUE ? [0] : []]))),
      clusters: clusters.length === 0 ? undefined : clusters,
    };
  }),
);

const serverIn = (cluster: string) => `${cluster}:443`;

const views = new WeakMap<Snapshot, ResourceView>();

/** True if the routes allow their subset to write in the place. */
export function allows(routes: Snapshot | undefined, place: string): boolean {
  if (routes === undefined) return false;
  if (isAbroad(place)) return mayReach(routes, serverIn(place));
  const view = views.get(routes) ?? viewOf(routes, "", "configmaps");
  views.set(routes, view);
  return view.ownershipOf(place) === "own";
}

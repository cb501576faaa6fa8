// The app of the model: a few places, and who is to own them. A place is a namespace at home, another cluster ("@eu"), or a namespace
// inside it ("@eu/m").

import { remember } from "../../src/base/remember.ts";
import type { ClusterRoute } from "../../src/mesh/ownership/clusters.ts";
import type { ClusterTables } from "../../src/mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { subset, table } from "../support/route-table.ts";

export const NAMESPACES: readonly string[] = ["a", "b"];
export const NAMESPACE_AND_CLUSTER: readonly string[] = ["a", "@eu"];
export const INSIDE_CLUSTER: readonly string[] = ["a", "@eu/m", "@eu/n"];
/** Longer than writes of a killed process take at home, so that the model finds a proxy that takes the one for the other. */
export const DRAIN_MS = 15_000;
export const BLUE = "blue";
export const SUBSETS = [DEFAULT_SUBSET, BLUE];
export const APP = { namespace: "shop", name: "app" };
export const CLUSTER = "@eu";
export const SERVER = "@eu:443";

/** What somebody wants of the app. */
export interface Wish {
  /** The owner of each place; "": the default subset. Undefined: there is no such namespace. */
  readonly owners: readonly (string | undefined)[];
  /** How the cluster is divided, if there is one. "deleted": it has no MeshCluster. "no rule": the app divides no cluster. */
  readonly cluster: "Terminate" | "Tunnel" | "None" | "deleted" | "no rule";
}

const MOVES: readonly Wish[] = [
  { owners: [DEFAULT_SUBSET, DEFAULT_SUBSET], cluster: "Tunnel" },
  { owners: [BLUE, DEFAULT_SUBSET], cluster: "Tunnel" },
  { owners: [DEFAULT_SUBSET, BLUE], cluster: "Tunnel" },
];

const INSIDE_MOVES: readonly Wish[] = [
  { owners: [DEFAULT_SUBSET, DEFAULT_SUBSET, DEFAULT_SUBSET], cluster: "Terminate" },
  { owners: [DEFAULT_SUBSET, DEFAULT_SUBSET, BLUE], cluster: "Terminate" },
  { owners: [BLUE, BLUE, DEFAULT_SUBSET], cluster: "Terminate" },
  { owners: [DEFAULT_SUBSET, BLUE, undefined], cluster: "Terminate" },
  { owners: [DEFAULT_SUBSET, DEFAULT_SUBSET, DEFAULT_SUBSET], cluster: "Tunnel" },
  { owners: [DEFAULT_SUBSET, BLUE, BLUE], cluster: "Tunnel" },
  ...(["None", "deleted", "no rule"] as const).map((cluster) => ({ owners: [DEFAULT_SUBSET], cluster })),
];

/** True if the place is another cluster, or inside one. */
export function isAbroad(place: string): boolean {
  return place.startsWith(CLUSTER);
}

/** The namespace of a place inside the cluster; undefined for other places. */
export function namespaceInside(place: string): string | undefined {
  return place.startsWith(`${CLUSTER}/`) ? place.slice(CLUSTER.length + 1) : undefined;
}

export function hasInside(places: readonly string[]): boolean {
  return places.some((place) => namespaceInside(place) !== undefined);
}

export function wishesFor(places: readonly string[]): readonly Wish[] {
  return hasInside(places) ? INSIDE_MOVES : MOVES;
}

/** The subsets that are to write in the place. */
export function writersBy({ owners, cluster }: Wish, place: string, index: number): readonly string[] {
  if (isAbroad(place) && cluster !== "Terminate" && cluster !== "Tunnel") return SUBSETS;
  const owner = owners[index];
  return owner === undefined ? [] : [owner];
}

const RULES = [subset(BLUE)];

function tableOf(owned: readonly (readonly [name: string, owner: string | undefined])[]): RouteTable {
  const known = owned.filter(([, owner]) => owner !== undefined);
  return table(RULES, Object.fromEntries(known.map(([name, owner]) => [name, owner === BLUE ? [0] : []])));
}

/** What the rules of the app say, by the wish. Planning remembers by object, so each is made once. */
export const rulesBy = remember((places: readonly string[]) =>
  wishesFor(places).map((wish) => {
    const owned = places.map((place, index) => [place, wish.owners[index]] as const);
    const inside = owned.flatMap(([place, owner]) => {
      const namespace = namespaceInside(place);
      return namespace === undefined ? [] : [[namespace, owner] as const];
    });
    const isDivided = wish.cluster === "Terminate";
    return {
      bySpec: tableOf(owned.filter(([place]) => !isAbroad(place))),
      clusters: places.some(isAbroad) && wish.cluster !== "no rule" ? clustersBy(wish) : undefined,
      clusterTables: new Map(isDivided ? [[CLUSTER, tableOf(inside)]] : []) as ClusterTables,
    };
  }),
);

function clustersBy({ owners, cluster }: Wish): readonly ClusterRoute[] {
  if (cluster === "deleted") return [];
  const owner = (cluster === "Terminate" ? undefined : owners.at(-1)) ?? DEFAULT_SUBSET;
  const route: ClusterRoute = { name: CLUSTER, servers: [SERVER], drainMs: DRAIN_MS, owner };
  if (cluster === "Terminate") return [{ ...route, upstream: { url: `https://${SERVER}` } }];
  return [cluster === "None" ? { ...route, isOpen: true } : route];
}

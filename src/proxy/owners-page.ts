// /debug/owners: the owners of all places and other clusters by the enforced snapshot, in pages. `ctrlmesh diff` compares them with the
// OwnershipSlices of the app, so an owner has the form that it has there. Invariant: a page is bounded.
import { CLUSTER_SCOPE, isBucket, placeHash } from "../kube/place.ts";
import { hasNothingYet } from "../mesh/handover/resource-fences.ts";
import { ownersIn, shownOwners } from "../mesh/ownership/place-owners.ts";
import type { Snapshot } from "../mesh/ownership/snapshot.ts";
import { isFencedIn, type RouteTable } from "../mesh/ownership/table.ts";
import { subsetDisplayName } from "../mesh/ownership/words.ts";

const MAX_PLACES = 1_000;
/** Before the names of other clusters: it sorts them behind all namespaces, none of which has it. */
const CLUSTER_MARK = "~";
/** Different lists of owners in a page. */
const MAX_LISTS = 100;

/** /debug/owners?after=team-b. @param query `after` is `next` of the page before */
export function ownersPage(query: URLSearchParams, snapshot: Snapshot | undefined): object {
  if (snapshot === undefined) return { snapshot: null };
  const { version, digest, app, subset, table, frozen = [], clusters = [] } = snapshot;
  const frozenNames = new Set(frozen.map(({ namespace }) => namespace));
  const after = query.get("after");
  const abroad = new Map(clusters.map((cluster) => [CLUSTER_MARK + cluster.name, cluster]));
  const all = [...placesIn(table), ...[...abroad.keys()].sort()];
  const left = after === null ? all : all.filter((place) => place > after);
  const lists = new Map<string, number>();
  const places: object[] = [];
  let last = "";
  for (const place of left.slice(0, MAX_PLACES)) {
    const cluster = abroad.get(place);
    const owners = JSON.stringify(
      cluster === undefined ? shownOwners(ownersIn(table, place)) : [{ subset: subsetDisplayName(cluster.owner) }],
    );
    const at = lists.get(owners) ?? lists.size;
    if (at === MAX_LISTS) break;
    lists.set(owners, at);
    const isFenced = cluster === undefined ? isFencedIn(table, place) || hasNothingYet(table) : cluster.isFenced === true;
    places.push({
      ...(cluster === undefined ? placeFields(place) : { cluster: cluster.name }),
      owners: at,
      ...(isFenced && { fenced: true }),
      ...(frozenNames.has(place) && { frozen: true }),
    });
    last = place;
  }
  const next = places.length < left.length ? last : undefined;
  const owners = [...lists.keys()].map((text) => JSON.parse(text) as object);
  return { version, digest, app, subset: subsetDisplayName(subset), total: all.length, owners, places, next };
}

function placesIn({ classOf }: RouteTable): string[] {
  return [...new Set([CLUSTER_SCOPE, ...classOf.keys()])].sort();
}

function placeFields(place: string): object {
  if (isBucket(place)) return { bucket: placeHash(place) };
  return place === CLUSTER_SCOPE ? { clusterScope: true } : { namespace: place };
}

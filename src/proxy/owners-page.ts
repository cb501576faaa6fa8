// /debug/owners: the owners of all places, other clusters and places inside them by the enforced snapshot, in pages. `ctrlmesh diff`
// compares them with the OwnershipSlices of the app, so an owner has the form that it has there. Invariants: a page is bounded; no page
// sorts anew what has not changed.
import { remember } from "../base/remember.ts";
import { CLUSTER_SCOPE, isBucket, placeHash } from "../kube/place.ts";
import { hasNothingYet } from "../mesh/handover/resource-fences.ts";
import type { ClusterRoute } from "../mesh/ownership/clusters.ts";
import { ownersIn, shownOwners } from "../mesh/ownership/place-owners.ts";
import type { Snapshot } from "../mesh/ownership/snapshot.ts";
import { isFencedIn, type RouteTable } from "../mesh/ownership/table.ts";
import { subsetDisplayName } from "../mesh/ownership/words.ts";

const MAX_PLACES = 1_000;
/** Before the names of other clusters: it sorts them behind all namespaces, none of which has it. */
const CLUSTER_MARK = "~";
/** Different lists of owners in a page. */
const MAX_LISTS = 100;

/** Places whose names on a page begin alike: `prefix`, and then what `places` has, in order. */
interface Section {
  readonly prefix: string;
  /** Before the name of a place in the list of frozen namespaces. */
  readonly frozenPrefix: string;
  readonly places: readonly string[];
  fieldsOf(place: string): object;
  /** As an OwnershipSlice shows them. */
  ownersOf(place: string): readonly object[];
  isFenced(place: string): boolean;
}

/** /debug/owners?after=team-b. @param query `after` is `next` of the page before */
export function ownersPage(query: URLSearchParams, snapshot: Snapshot | undefined): object {
  if (snapshot === undefined) return { snapshot: null };
  const { version, digest, app, subset, frozen = [] } = snapshot;
  const frozenNames = new Set(frozen.map(({ namespace }) => namespace));
  const after = query.get("after");
  const sections = sectionsOf(snapshot);
  const lists = new Map<string, number>();
  const places: object[] = [];
  let last = "";
  let next: string | undefined;
  for (const { section, place, name } of placesAfter(sections, after)) {
    const owners = JSON.stringify(section.ownersOf(place));
    const at = lists.get(owners) ?? lists.size;
    if (places.length === MAX_PLACES || at === MAX_LISTS) {
      next = last;
      break;
    }
    lists.set(owners, at);
    places.push({
      ...section.fieldsOf(place),
      owners: at,
      ...(section.isFenced(place) && { fenced: true }),
      ...(frozenNames.has(section.frozenPrefix + place) && { frozen: true }),
    });
    last = name;
  }
  const total = sections.reduce((sum, each) => sum + each.places.length, 0);
  const owners = [...lists.keys()].map((text) => JSON.parse(text) as object);
  return { version, digest, app, subset: subsetDisplayName(subset), total, owners, places, next };
}

/** In the order of the names of their places. */
function sectionsOf({ table, clusters = [], clusterTables = new Map() }: Snapshot): Section[] {
  const abroad = clusters.flatMap((cluster) => {
    const inside = clusterTables.get(cluster.name);
    if (cluster.upstream === undefined) return [wholeCluster(cluster)];
    return inside === undefined ? [] : [placesOf(inside, cluster.name)];
  });
  return [placesOf(table, undefined), ...abroad.sort((a, b) => (a.prefix < b.prefix ? -1 : 1))];
}

function wholeCluster({ name, owner, isFenced }: ClusterRoute): Section {
  return {
    prefix: CLUSTER_MARK + name,
    frozenPrefix: `${name}/`,
    places: [""],
    fieldsOf: () => ({ cluster: name }),
    ownersOf: () => [{ subset: subsetDisplayName(owner) }],
    isFenced: () => isFenced === true,
  };
}

/** @param cluster undefined: home */
function placesOf(table: RouteTable, cluster: string | undefined): Section {
  const isAllFenced = hasNothingYet(table);
  return {
    prefix: cluster === undefined ? "" : `${CLUSTER_MARK}${cluster}/`,
    frozenPrefix: cluster === undefined ? "" : `${cluster}/`,
    places: sortedPlaces(table.classOf),
    fieldsOf: (place) => ({ ...(cluster !== undefined && { cluster }), ...placeFields(place) }),
    ownersOf: (place) => shownOwners(ownersIn(table, place)),
    isFenced: (place) => isAllFenced || isFencedIn(table, place),
  };
}

const sortedPlaces = remember((classOf: RouteTable["classOf"]) => [...new Set([CLUSTER_SCOPE, ...classOf.keys()])].sort());

function* placesAfter(sections: readonly Section[], after: string | null) {
  for (const section of sections) {
    const { prefix, places } = section;
    if (after !== null && prefix + (places.at(-1) ?? "") <= after) continue;
    for (const place of places) {
      const name = prefix + place;
      if (after === null || name > after) yield { section, place, name };
    }
  }
}

function placeFields(place: string): object {
  if (isBucket(place)) return { bucket: placeHash(place) };
  return place === CLUSTER_SCOPE ? { clusterScope: true } : { namespace: place };
}

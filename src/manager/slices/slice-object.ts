// A slice as the object that the API server has, in both directions. Pure.
import {
  type OwnershipEntry,
  type OwnershipSlice,
  ownershipSliceKind,
  readOwnership,
  SLICE_APP_LABEL,
} from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { controllerRef, isControlledBy } from "../../kube/client/owner.ts";
import { apiVersionOf, type Resource } from "../../kube/client/resource.ts";
import { BUCKETS, CLUSTER_SCOPE, isBucket, isInClusterScope, placeHash } from "../../kube/place.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { App } from "../apps/app.ts";
import { clusterOfPlace, placeOfCluster } from "./cluster-ownership.ts";
import { insideOfPlace, placeInside } from "./inside-ownership.ts";
import type { Slice, SliceEntry } from "./pack-slices.ts";

type SlicedApp = Pick<App, "ref" | "object">;

/**
 * @param resource the kind of the app's object, which owns the slice, so that the garbage collector deletes both
 * @param stored the metadata that the object has; undefined: it is to be created
 */
export function sliceObject(
  { ref, object }: SlicedApp,
  resource: Resource,
  { name, entries }: Slice,
  stored: KubeObject["metadata"] | undefined,
): OwnershipSlice {
  const ownership = entries.map(entryOf);
  const count = (matches: (entry: SliceEntry) => boolean) =>
    entries.reduce((sum, entry) => sum + (matches(entry) ? entry.places.length : 0), 0);
  return {
    apiVersion: apiVersionOf(OWNERSHIP_SLICES) as OwnershipSlice["apiVersion"],
    kind: ownershipSliceKind.kind,
    metadata: {
      ...stored,
      name,
      namespace: ref.namespace,
      labels: { ...stored?.labels, [SLICE_APP_LABEL]: ref.name },
      ownerReferences: [{ ...controllerRef(resource, object) }],
    },
    app: ref.name,
    places: count(() => true),
    moving: count(({ ownership: { state } }) => state === "Moving" || state === "Fenced"),
    ownership,
  };
}

/** True if the object has the label and the owner that a slice of the app has. */
export function isSliceOf({ ref, object }: SlicedApp, slice: KubeObject): boolean {
  return appNameOf(slice) === ref.name && isControlledBy(slice, object);
}

export function appNameOf({ metadata }: KubeObject): string {
  return metadata.labels?.[SLICE_APP_LABEL] ?? "";
}

function entryOf({ ownership, places }: SliceEntry): OwnershipEntry {
  const clusters = places.flatMap((place) => clusterOfPlace(place) ?? []);
  const inside = Map.groupBy(
    places.flatMap((place) => insideOfPlace(place) ?? []),
    ({ cluster }) => cluster,
  );
  const insideClusters = [...inside].map(([cluster, each]) => ({ cluster, ...fieldsOf(each.map(({ place }) => place)) }));
  const atHome = places.filter((place) => clusterOfPlace(place) === undefined && insideOfPlace(place) === undefined);
  return {
    ...ownership,
    ...fieldsOf(atHome),
    ...(clusters.length > 0 && { clusters }),
    ...(insideClusters.length > 0 && { insideClusters }),
  };
}

type PlaceFields = Pick<OwnershipEntry, "namespaces" | "buckets" | "clusterScope">;

/** The names of places of one cluster. */
function fieldsOf(places: readonly string[]): PlaceFields {
  const namespaces = places.filter((place) => !isInClusterScope(place));
  const buckets = places.filter(isBucket).map(placeHash);
  return {
    ...(namespaces.length > 0 && { namespaces }),
    ...(buckets.length > 0 && { buckets: buckets.sort((a, b) => a - b) }),
    ...(places.includes(CLUSTER_SCOPE) && { clusterScope: true }),
  };
}

function placesIn({ namespaces = [], buckets = [], clusterScope = false }: PlaceFields): string[] {
  return [...namespaces, ...buckets.flatMap((hash) => BUCKETS[hash] ?? []), ...(clusterScope ? [CLUSTER_SCOPE] : [])];
}

export function readSlice(object: OwnershipSlice): Slice {
  const entries = readOwnership(object).map(
    ({ namespaces, buckets, clusterScope, clusters = [], insideClusters = [], ...ownership }) => ({
      ownership,
      places: [
        ...placesIn({ namespaces, buckets, clusterScope }),
        ...clusters.map(placeOfCluster),
        ...insideClusters.flatMap(({ cluster, ...fields }) => placesIn(fields).map((place) => placeInside({ cluster, place }))),
      ],
    }),
  );
  return { name: object.metadata.name ?? "", entries };
}

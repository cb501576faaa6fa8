// The places of apps, from their OwnershipSlices, and their texts. Invariant: no owner is computed here.
import { type OwnershipSlice, readOwnership } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { isMeshError } from "../../base/errors.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";

type Entry = ReturnType<typeof readOwnership>[number];
type Ownership = Omit<Entry, "namespaces" | "buckets" | "clusterScope" | "clusters" | "insideClusters">;
type PlaceFields = Pick<Entry, "namespaces" | "buckets" | "clusterScope">;

export interface OwnedPlace extends Ownership {
  /** NAMESPACE/NAME */
  readonly app: string;
  readonly slice: string;
  /** One of these three. Absent: a whole other cluster. */
  readonly namespace?: string;
  readonly bucket?: number;
  readonly clusterScope?: true;
  /** Name of the MeshCluster. Absent: home. */
  readonly cluster?: string;
}

interface Place {
  readonly namespace?: string | undefined;
  readonly bucket?: number | undefined;
  readonly clusterScope?: true | undefined;
  readonly cluster?: string | undefined;
}

export interface WithOwners {
  readonly owners?: readonly Owner[] | undefined;
}

interface Owner {
  readonly subset?: string | undefined;
  readonly resources?: readonly string[] | undefined;
  readonly moreResources?: number | undefined;
}

export async function listSlices(cluster: Cluster, namespace: string | undefined, selector: string | undefined) {
  return cluster.list(OWNERSHIP_SLICES, namespace, selector).catch((error: unknown) => {
    if (!isMeshError(error, "NOT_FOUND")) throw error;
    throw failure("this cluster does not serve ownershipslices.ctrlmesh.kruise.io: apply the CRDs of this version");
  });
}

export function placesOf(slice: OwnershipSlice): OwnedPlace[] {
  const head = { app: `${slice.metadata.namespace}/${slice.app}`, slice: slice.metadata.name ?? "" };
  return readOwnership(slice).flatMap(
    ({ namespaces, buckets, clusterScope, clusters = [], insideClusters = [], ...ownership }): OwnedPlace[] => {
      const all = [
        ...placesIn({ namespaces, buckets, clusterScope }),
        ...clusters.map((cluster) => ({ cluster })),
        ...insideClusters.flatMap(({ cluster, ...fields }) => placesIn(fields).map((place) => ({ cluster, ...place }))),
      ];
      return all.map((place) => ({ ...head, ...place, ...ownership }));
    },
  );
}

function placesIn({ namespaces = [], buckets = [], clusterScope = false }: PlaceFields) {
  return [
    ...namespaces.map((namespace) => ({ namespace })),
    ...buckets.map((bucket) => ({ bucket })),
    ...(clusterScope ? [{ clusterScope } as const] : []),
  ];
}

/** True for another cluster of which one subset owns everything. */
function isWholeCluster({ namespace, bucket, clusterScope, cluster }: Place): boolean {
  return cluster !== undefined && namespace === undefined && bucket === undefined && clusterScope === undefined;
}

/** Inside another cluster as CLUSTER/NAMESPACE. */
export function placeText(place: Place): string {
  const { namespace, bucket, cluster } = place;
  if (isWholeCluster(place)) return `(cluster ${cluster})`;
  const text = namespace ?? (bucket === undefined ? "(cluster scope)" : `(cluster scope, hash ${bucket})`);
  return cluster === undefined ? text : `${cluster}/${text}`;
}

export function ownerText({ owners = [] }: WithOwners): string {
  const subsets = new Set(owners.map(({ subset }) => subset ?? "nobody"));
  return subsets.size === 0 ? "nobody" : [...subsets].join(", ");
}

export function resourcesText({ owners = [] }: WithOwners): string {
  const texts = owners.map(({ subset = "nobody", resources, moreResources }) => {
    if (resources === undefined) return `${subset}: all others`;
    return `${subset}: ${resources.join(" ")}${moreResources === undefined ? "" : ` and ${moreResources} more`}`;
  });
  return owners.some(({ resources }) => resources !== undefined) ? texts.join("; ") : "all";
}

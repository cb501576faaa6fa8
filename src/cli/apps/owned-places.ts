// The places of apps, from their OwnershipSlices, and their texts. Invariant: no owner is computed here.
import { type OwnershipSlice, readOwnership } from "../../api/ownership-slice.ts";
import { OWNERSHIP_SLICES } from "../../api/resources.ts";
import { isMeshError } from "../../base/errors.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";

type Entry = ReturnType<typeof readOwnership>[number];
type Ownership = Omit<Entry, "namespaces" | "buckets" | "clusterScope" | "clusters">;

export interface OwnedPlace extends Ownership {
  /** NAMESPACE/NAME */
  readonly app: string;
  readonly slice: string;
  /** One of these four. */
  readonly namespace?: string;
  readonly bucket?: number;
  readonly clusterScope?: true;
  /** Name of a MeshCluster. */
  readonly cluster?: string;
}

interface Place {
  readonly namespace?: string | undefined;
  readonly bucket?: number | undefined;
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
    ({ namespaces = [], buckets = [], clusterScope = false, clusters = [], ...ownership }): OwnedPlace[] => [
      ...namespaces.map((namespace) => ({ ...head, namespace, ...ownership })),
      ...buckets.map((bucket) => ({ ...head, bucket, ...ownership })),
      ...(clusterScope ? [{ ...head, clusterScope, ...ownership }] : []),
      ...clusters.map((cluster) => ({ ...head, cluster, ...ownership })),
    ],
  );
}

export function placeText({ namespace, bucket, cluster }: Place): string {
  if (cluster !== undefined) return `(cluster ${cluster})`;
  return namespace ?? (bucket === undefined ? "(cluster scope)" : `(cluster scope, hash ${bucket})`);
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

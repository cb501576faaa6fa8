// Who owns each other cluster by the plan that the proxies were sent, as places of a slice. Pure. Invariant: no namespace and no
// bucket has the place of a cluster.
import { remember } from "../../base/remember.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { wholeClusters } from "../apps/planned-clusters.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import type { Ownership } from "./place-ownership.ts";

const MARK = "cluster/";

export function placeOfCluster(name: string): string {
  return MARK + name;
}

/** Undefined for the place of a namespace or in the home cluster's scope. */
export function clusterOfPlace(place: string): string | undefined {
  return place.startsWith(MARK) ? place.slice(MARK.length) : undefined;
}

/** By place. Clusters with the same ownership share one object. One whose namespaces are divided has no owner. */
export function ownershipOfClusters(plan: Pick<OwnershipPlan, "rules" | "clusterWaits">): ReadonlyMap<string, Ownership> {
  const waiting = subsetsByCluster(plan);
  const known = new Map<string, Ownership>();
  return new Map(
    wholeClusters(plan).map(({ name, owner, isFenced = false }) => {
      const from = [...(waiting.get(name) ?? [])]
        .filter((subset) => subset !== owner)
        .map(subsetDisplayName)
        .sort();
      const owners = [{ subset: subsetDisplayName(owner) }];
      const key = JSON.stringify(isFenced ? [owner, from] : [owner]);
      const ownership = known.get(key) ?? (isFenced ? movingOwnership(owners, from) : { state: "Owned" as const, owners });
      known.set(key, ownership);
      return [placeOfCluster(name), ownership];
    }),
  );
}

function movingOwnership(owners: NonNullable<Ownership["owners"]>, from: readonly string[]): Ownership {
  return from.length === 0 ? { state: "Fenced", owners } : { state: "Moving", owners, from };
}

/** The subsets whose pods may still write to each cluster. */
function subsetsByCluster({ clusterWaits = [] }: Pick<OwnershipPlan, "clusterWaits">): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const subsetsOf = remember((_clusters: readonly string[]) => new Set<string>()); // the pods of one group share a list
  for (const { subset, clusters } of clusterWaits) {
    const read = subsetsOf(clusters);
    if (subset === undefined || read.has(subset)) continue;
    read.add(subset);
    for (const cluster of clusters) found.set(cluster, (found.get(cluster) ?? new Set()).add(subset));
  }
  return found;
}

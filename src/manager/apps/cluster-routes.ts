// The clusters that an app divides, with the owners that its spec names. Pure.
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { AcceptedCluster } from "./accept-clusters.ts";
import type { AppSpec } from "./app.ts";

export type ClusterOwners = NonNullable<AppSpec["clusterOwners"]>;

/** Without fences. @param accepted of the app's namespace */
export function clusterRoutes(accepted: readonly AcceptedCluster[], ownersOf: ClusterOwners): readonly ClusterRoute[] {
  const owners = ownersOf(accepted);
  return accepted.flatMap(({ labels: _, ...cluster }) => {
    const owner = owners.get(cluster.name);
    return owner === undefined ? [] : [{ ...cluster, owner }];
  });
}

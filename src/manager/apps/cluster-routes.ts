// The clusters that an app divides, with the owners that its spec names. Pure.
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { AcceptedCluster } from "./accept-clusters.ts";
import type { AppSpec } from "./app.ts";
import type { ChosenClusters } from "./chosen-clusters.ts";

export type ClusterOwners = NonNullable<AppSpec["clusterOwners"]>;

/** Without fences. @param accepted of the app's namespace */
export function clusterRoutes(
  accepted: readonly AcceptedCluster[],
  ownersOf: ClusterOwners,
  chosen: ChosenClusters,
): readonly ClusterRoute[] {
  const owners = ownersOf(accepted, chosen);
  return accepted.flatMap(
    ({ labels: _, owners: __, isUnreachable: ___, reachableSince: ____, kubeconfigSecret: _____, ...cluster }) => {
      const owner = owners.get(cluster.name);
      return owner === undefined ? [] : [{ ...cluster, owner }];
    },
  );
}

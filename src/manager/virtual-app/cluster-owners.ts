// Which subset owns each other cluster, by the spec of a VirtualApp. Pure. The spec must be valid.
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";

/** Undefined if no rule of a subset names clusters. The first subset in spec order that has a matching rule owns the cluster. */
export function clusterOwnersBy({ route, subsets = [] }: VirtualAppSpec): AppSpec["clusterOwners"] {
  const matches = new Map((route?.subRules ?? []).map(({ name, match }) => [name, match]));
  const rules = subsets.flatMap(({ name: subset, routeRules }) =>
    routeRules
      .flatMap((rule) => matches.get(rule) ?? [])
      .filter(({ clusters, clusterSelector }) => clusters !== undefined || clusterSelector !== undefined)
      .map(({ clusters, clusterSelector }) => ({ subset, clusters, clusterSelector })),
  );
  if (rules.length === 0) return undefined;
  const ownerOf = ({ name, labels }: ClusterFacts) => {
    const first = rules.find(
      ({ clusters, clusterSelector }) =>
        clusters?.includes(name) || (clusterSelector !== undefined && matchesSelector(clusterSelector, labels)),
    );
    return first?.subset ?? DEFAULT_SUBSET;
  };
  return (clusters) => new Map(clusters.map((cluster) => [cluster.name, ownerOf(cluster)]));
}

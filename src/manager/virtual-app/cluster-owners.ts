// Which subset owns each other cluster, by the spec of a VirtualApp. Pure. The spec must be valid.
import type { LabelSelector } from "../../api/label-selector.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";

/** An entry of a rule that names clusters. */
export interface ClusterRule {
  /** As in the spec: "subRules[canary].match[0]". */
  readonly origin: string;
  readonly subset: string;
  readonly clusters: readonly string[] | undefined;
  readonly clusterSelector: LabelSelector | undefined;
}

/** In the order in which they decide. */
export function clusterRulesOf({ route, subsets = [] }: VirtualAppSpec): readonly ClusterRule[] {
  const matches = new Map((route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return subsets.flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((rule) =>
      (matches.get(rule) ?? []).flatMap(({ clusters, clusterSelector }, at): ClusterRule[] => {
        const namesClusters = clusters !== undefined || clusterSelector !== undefined;
        return namesClusters ? [{ origin: `subRules[${rule}].match[${at}]`, subset, clusters, clusterSelector }] : [];
      }),
    ),
  );
}

export function matchesCluster({ clusters, clusterSelector }: ClusterRule, { name, labels }: ClusterFacts): boolean {
  return clusters?.includes(name) || (clusterSelector !== undefined && matchesSelector(clusterSelector, labels));
}

/** Undefined if no rule of a subset names clusters. The first subset in spec order that has a matching rule owns the cluster. */
export function clusterOwnersBy(spec: VirtualAppSpec): AppSpec["clusterOwners"] {
  const rules = clusterRulesOf(spec);
  if (rules.length === 0) return undefined;
  const ownerOf = (cluster: ClusterFacts) => rules.find((rule) => matchesCluster(rule, cluster))?.subset ?? DEFAULT_SUBSET;
  return (clusters) => new Map(clusters.map((cluster) => [cluster.name, ownerOf(cluster)]));
}

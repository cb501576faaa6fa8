// What rules say of other clusters that no MeshCluster has. Pure. A rule may come before its MeshCluster, so this is no problem of the rule.
import type { LabelSelector } from "../../api/label-selector.ts";
import { didYouMean } from "../../api/nearest.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";
import { clusterRulesOf } from "./cluster-owners.ts";

export type NamedClusters = readonly Pick<ClusterFacts, "name" | "labels">[];

/** @param spec a valid one. @param known all MeshClusters of the namespace */
export function unmatchedRules(spec: VirtualAppSpec, known: NamedClusters): string[] {
  const names = known.map(({ name }) => name);
  return clusterRulesOf(spec).flatMap(({ origin, clusters = [], clusterSelector }) => [
    ...clusters
      .filter((name) => !names.includes(name))
      .map((name) => `${origin}.clusters: there is no MeshCluster ${name}${didYouMean(name, names)}`),
    ...unmatchedSelector(`${origin}.clusterSelector`, clusterSelector, known),
  ]);
}

export function unmatchedSelector(field: string, selector: LabelSelector | undefined, known: NamedClusters): string[] {
  if (selector === undefined || known.some(({ labels }) => matchesSelector(selector, labels))) return [];
  return [`${field}: matches none of ${known.length} MeshClusters`];
}

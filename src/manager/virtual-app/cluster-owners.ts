// Which subset owns each other cluster, by the spec of a VirtualApp. Pure. The spec must be valid.
import type { LabelSelector } from "../../api/label-selector.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import type { AppSpec } from "../apps/app.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";

/** An entry of a rule that names clusters. */
export interface ClusterRule {
  /** As in the spec: "subRules[canary].match[0]". */
  readonly origin: string;
  readonly subset: string;
  readonly clusters: readonly string[] | undefined;
  readonly clusterSelector: LabelSelector | undefined;
  /** The key of a PlacementDecision. */
  readonly decisionKey: string | undefined;
}

/** In the order in which they decide. */
export function clusterRulesOf({ route, subsets = [] }: VirtualAppSpec): readonly ClusterRule[] {
  const matches = new Map((route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return subsets.flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((rule) =>
      (matches.get(rule) ?? []).flatMap(({ clusters, clusterSelector, clustersFrom }, at): ClusterRule[] => {
        const decisionKey = clustersFrom?.placementDecision;
        const namesClusters = [clusters, clusterSelector, decisionKey].some((each) => each !== undefined);
        const origin = `subRules[${rule}].match[${at}]`;
        return namesClusters ? [{ origin, subset, clusters, clusterSelector, decisionKey }] : [];
      }),
    ),
  );
}

/** "unknown": the rule names a PlacementDecision that is missing. */
export function matchesCluster(
  { clusters, clusterSelector, decisionKey }: ClusterRule,
  { name, labels }: ClusterFacts,
  chosen: ChosenClusters,
): boolean | "unknown" {
  if (decisionKey !== undefined) return chosen.get(decisionKey)?.has(name) ?? "unknown";
  return clusters?.includes(name) || (clusterSelector !== undefined && matchesSelector(clusterSelector, labels));
}

/** The first rule that matches the cluster, or of which nobody knows whether it does. */
export function decidingRule(
  rules: readonly ClusterRule[],
  cluster: ClusterFacts,
  chosen: ChosenClusters,
): { readonly rule: ClusterRule; readonly isMissing: boolean } | undefined {
  for (const rule of rules) {
    const match = matchesCluster(rule, cluster, chosen);
    if (match !== false) return { rule, isMissing: match === "unknown" };
  }
  return undefined;
}

/**
 * Empty if no rule of a subset names clusters. The first subset in spec order that has a matching rule owns the cluster. If a
 * PlacementDecision that could decide is missing, the cluster stays with the subset that has it.
 * @param app its name in the statuses of MeshClusters
 */
export function clusterRulesIn(
  spec: VirtualAppSpec,
  app: string,
): Pick<AppSpec, "clusterOwners" | "decisionKeys" | "missingDecision"> {
  const rules = clusterRulesOf(spec);
  if (rules.length === 0) return {};
  const subsets = new Set((spec.subsets ?? []).map(({ name }) => name));
  const ownerOf = (cluster: ClusterFacts, chosen: ChosenClusters) => {
    const decided = decidingRule(rules, cluster, chosen);
    if (decided?.isMissing !== true) return decided?.rule.subset ?? DEFAULT_SUBSET;
    const present = cluster.owners?.get(app);
    return present !== undefined && subsets.has(present) ? present : DEFAULT_SUBSET;
  };
  return {
    clusterOwners: (clusters, chosen) => new Map(clusters.map((cluster) => [cluster.name, ownerOf(cluster, chosen)])),
    decisionKeys: [...new Set(rules.flatMap(({ decisionKey = [] }) => decisionKey))],
    missingDecision: (cluster, chosen) => {
      const decided = decidingRule(rules, cluster, chosen);
      return decided?.isMissing ? decided.rule.decisionKey : undefined;
    },
  };
}

// Which subset owns each other cluster, by the spec of a VirtualApp. Pure. The spec must be valid. Clusters whose namespaces are divided
// have the default subset here: route-rules.ts gives their namespaces to subsets.
import type { LabelSelector } from "../../api/label-selector.ts";
import { type MatchLimitSelector, namesClusters } from "../../api/match-limit-selector.ts";
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
  /** It names namespaces or resources, so it gives nothing of a cluster that has one owner. */
  readonly isPartial: boolean;
}

/** In the order in which they decide. */
export function clusterRulesOf({ route, subsets = [] }: VirtualAppSpec): readonly ClusterRule[] {
  const matches = new Map((route?.subRules ?? []).map(({ name, match }) => [name, match]));
  return subsets.flatMap(({ name: subset, routeRules }) =>
    routeRules.flatMap((rule) =>
      (matches.get(rule) ?? []).flatMap((match, at): ClusterRule[] => {
        if (!namesClusters(match)) return [];
        const { clusters, clusterSelector, clustersFrom } = match;
        const decisionKey = clustersFrom?.placementDecision;
        const origin = `subRules[${rule}].match[${at}]`;
        return [{ origin, subset, clusters, clusterSelector, decisionKey, isPartial: isPartial(match) }];
      }),
    ),
  );
}

function isPartial({ namespaceSelector, namespaceRegex, resources = [] }: MatchLimitSelector): boolean {
  return namespaceSelector !== undefined || namespaceRegex !== undefined || resources.length > 0;
}

/** "unknown": the rule names a PlacementDecision that is missing. */
export function matchesCluster(
  { clusters, clusterSelector, decisionKey }: Pick<ClusterRule, "clusters" | "clusterSelector" | "decisionKey">,
  { name, labels }: ClusterFacts,
  chosen: ChosenClusters,
): boolean | "unknown" {
  if (decisionKey !== undefined) return chosen.get(decisionKey)?.has(name) ?? "unknown";
  return clusters?.includes(name) || (clusterSelector !== undefined && matchesSelector(clusterSelector, labels));
}

interface Decided {
  readonly rule: ClusterRule;
  readonly isMissing: boolean;
}

/** The first rule that gives the whole cluster, or of which nobody knows whether it does. */
export function decidingRule(rules: readonly ClusterRule[], cluster: ClusterFacts, chosen: ChosenClusters): Decided | undefined {
  for (const rule of rules.filter((each) => !each.isPartial)) {
    const match = matchesCluster(rule, cluster, chosen);
    if (match !== false) return { rule, isMissing: match === "unknown" };
  }
  return undefined;
}

/** The first rule of which nobody knows whether it gives something of the cluster, before one that gives the whole. */
function missingRule(rules: readonly ClusterRule[], cluster: ClusterFacts, chosen: ChosenClusters): ClusterRule | undefined {
  const decided = decidingRule(rules, cluster, chosen);
  const before = decided === undefined ? rules : rules.slice(0, rules.indexOf(decided.rule) + 1);
  const counts = (rule: ClusterRule) => cluster.upstream !== undefined || !rule.isPartial;
  return before.find((rule) => counts(rule) && matchesCluster(rule, cluster, chosen) === "unknown");
}

/**
 * Empty if no rule of a subset names clusters. The first subset in spec order that has a matching rule owns the cluster. If a
 * PlacementDecision that could decide is missing, the cluster stays with the subset that has it.
 * @param app its name in the statuses of MeshClusters
 */
export function clusterRulesIn(
  spec: VirtualAppSpec,
  app: string,
): Pick<AppSpec, "clusterOwners" | "idleClusterRules" | "decisionKeys" | "missingDecision"> {
  const rules = clusterRulesOf(spec);
  if (rules.length === 0) return {};
  const subsets = new Set((spec.subsets ?? []).map(({ name }) => name));
  const ownerOf = (cluster: ClusterFacts, chosen: ChosenClusters) => {
    if (cluster.upstream !== undefined) return DEFAULT_SUBSET;
    const decided = decidingRule(rules, cluster, chosen);
    if (decided?.isMissing !== true) return decided?.rule.subset ?? DEFAULT_SUBSET;
    const present = cluster.owners?.get(app);
    return present !== undefined && subsets.has(present) ? present : DEFAULT_SUBSET;
  };
  return {
    clusterOwners: (clusters, chosen) => new Map(clusters.map((cluster) => [cluster.name, ownerOf(cluster, chosen)])),
    idleClusterRules: (cluster, chosen) => idleRules(rules, cluster, chosen),
    decisionKeys: [...new Set(rules.flatMap(({ decisionKey = [] }) => decisionKey))],
    missingDecision: (cluster, chosen) => missingRule(rules, cluster, chosen)?.decisionKey,
  };
}

/** The rules that match a cluster with one owner and give nothing of it, since they name namespaces or resources. */
function idleRules(rules: readonly ClusterRule[], cluster: ClusterFacts, chosen: ChosenClusters): readonly string[] {
  if (cluster.upstream !== undefined) return [];
  return rules.flatMap((rule) => (rule.isPartial && matchesCluster(rule, cluster, chosen) === true ? [rule.origin] : []));
}

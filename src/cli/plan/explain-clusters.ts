// Why a subset owns another cluster, and why the cluster may still have several writers: the lines below the answers of the sidecars.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { PlacementDecision } from "../../api/placement-decision.ts";
import type { ShardingConfig, ShardingRoot } from "../../api/sharding-config.ts";
import { validateVirtualApp } from "../../api/virtual-app.ts";
import { type AcceptedCluster, acceptClusters } from "../../manager/apps/accept-clusters.ts";
import type { AppSpec, SourceObject } from "../../manager/apps/app.ts";
import { type ChosenClusters, chosenClusters } from "../../manager/apps/chosen-clusters.ts";
import { decisionText, explainClusterRules, type RuleAnswer, selectorText } from "../../manager/virtual-app/explain-rules.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { FoundApp } from "../apps/apps.ts";
import { clusterState, conditionLines, nextCommand } from "../apps/cluster-states.ts";
import { counted } from "../frame/output.ts";
import type { ExplainedApp } from "./explain-rules.ts";
import { managerSources } from "./sources.ts";

interface ClusterObjects {
  /** All MeshClusters of the namespace. */
  readonly objects: readonly MeshCluster[];
  /** All PlacementDecisions of the namespace. */
  readonly decisions: readonly PlacementDecision[];
}

/** The rules of each app about the cluster. */
export function explainedClusters(
  apps: readonly FoundApp[],
  { objects, decisions }: ClusterObjects,
  name: string,
): ExplainedApp[] {
  const { accepted } = acceptClusters(objects);
  const chosen = chosenClusters(decisions);
  const cluster = accepted.find((each) => each.name === name);
  if (cluster === undefined) return [];
  return apps.flatMap((app) => {
    const rules = rulesOf(app, cluster, { accepted, chosen });
    return rules.length === 0 ? [] : [{ app: `${app.namespace}/${app.name}`, rules }];
  });
}

interface Abroad {
  readonly accepted: readonly AcceptedCluster[];
  readonly chosen: ChosenClusters;
}

function rulesOf({ objects, object, kind }: FoundApp, cluster: AcceptedCluster, abroad: Abroad): readonly RuleAnswer[] {
  const checked = validateVirtualApp(object);
  if (checked.ok) return explainClusterRules(checked.value.spec, cluster, abroad.chosen);
  const source = managerSources().find(({ resource }) => resource.kind === kind.resource.kind);
  const [family] = source?.appsOf(objects as readonly SourceObject[]) ?? [];
  const root = (family?.objects as readonly ShardingConfig[] | undefined)?.find((each) => each.spec.root !== undefined)?.spec
    .root;
  return root === undefined ? [] : rulesOfRoot(root, family?.spec, cluster, abroad);
}

function rulesOfRoot(
  { clusterSelector, clustersFrom }: ShardingRoot,
  spec: AppSpec | undefined,
  cluster: AcceptedCluster,
  { accepted, chosen }: Abroad,
): readonly RuleAnswer[] {
  const owners = spec?.clusterOwners?.(accepted, chosen);
  if (owners === undefined) return [];
  const owner = owners.get(cluster.name);
  const rule = clustersFrom === undefined ? "root.clusterSelector" : "root.clustersFrom";
  const compared = [
    ...(clusterSelector === undefined ? [] : [selectorText("clusterSelector", clusterSelector, cluster.labels)]),
    ...(clustersFrom === undefined ? [] : [decisionText(clustersFrom.placementDecision, cluster.name, chosen)]),
  ].join("; ");
  if (owner === undefined) return [{ rule, subset: "(every pod)", match: "no", why: compared }];
  if (owner === DEFAULT_SUBSET) return [{ rule, subset: "(no shard)", match: "no", why: compared }];
  const shared = [...owners.values()].filter((each) => each !== DEFAULT_SUBSET);
  const shards = new Set(shared).size;
  const sharing = `${counted(shards, "shard")} ${shards === 1 ? "shares" : "share"} ${counted(shared.length, "cluster")}`;
  const shares = cluster.isUnreachable ? `${sharing}, and this one stays where it is, since it is unreachable` : sharing;
  const match = spec?.missingDecision?.(cluster, chosen) === undefined ? "yes" : "not known";
  return [{ rule, subset: subsetDisplayName(owner), match, why: `${compared}; ${shares}` }];
}

/** Why it is not ready, since when, and what to do next; or that it is. */
export function clusterStatusLines(object: MeshCluster, access: readonly string[], nowMs: number): string[] {
  const state = clusterState(object);
  const ready = state.conditions.find(({ type }) => type === "Ready");
  const [accepted] = acceptClusters([object]).accepted;
  const next = nextCommand(state, accepted?.servers[0], access);
  const broken = conditionLines(state, nowMs);
  if (broken.length === 0) return ["", `MeshCluster ${state.namespace}/${state.name}: ${ready?.message ?? "no status yet"}`];
  const commands = next === undefined ? [] : [`  next: ${next}`];
  return ["", `MeshCluster ${state.namespace}/${state.name}:`, ...broken.map((line) => `  ${line}`), ...commands];
}

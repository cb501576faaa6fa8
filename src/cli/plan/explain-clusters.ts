// Why a subset owns another cluster, and why the cluster may still have several writers: the lines below the answers of the sidecars.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { validateVirtualApp } from "../../api/virtual-app.ts";
import { type AcceptedCluster, acceptClusters } from "../../manager/apps/accept-clusters.ts";
import type { SourceObject } from "../../manager/apps/app.ts";
import { explainClusterRules, type RuleAnswer, selectorText } from "../../manager/virtual-app/explain-rules.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { FoundApp } from "../apps/apps.ts";
import { clusterState, conditionLines, nextCommand } from "../apps/cluster-states.ts";
import { counted } from "../frame/output.ts";
import type { ExplainedApp } from "./explain-rules.ts";
import { managerSources } from "./sources.ts";

/** The rules of each app about the cluster. @param objects all MeshClusters of the namespace */
export function explainedClusters(apps: readonly FoundApp[], objects: readonly MeshCluster[], name: string): ExplainedApp[] {
  const { accepted } = acceptClusters(objects);
  const cluster = accepted.find((each) => each.name === name);
  if (cluster === undefined) return [];
  return apps.flatMap((app) => {
    const rules = rulesOf(app, cluster, accepted);
    return rules.length === 0 ? [] : [{ app: `${app.namespace}/${app.name}`, rules }];
  });
}

function rulesOf(
  { objects, object, kind }: FoundApp,
  cluster: AcceptedCluster,
  all: readonly AcceptedCluster[],
): readonly RuleAnswer[] {
  const checked = validateVirtualApp(object);
  if (checked.ok) return explainClusterRules(checked.value.spec, cluster);
  const source = managerSources().find(({ resource }) => resource.kind === kind.resource.kind);
  const [family] = source?.appsOf(objects as readonly SourceObject[]) ?? [];
  const { spec } = family ?? {};
  const root = (family?.objects as readonly ShardingConfig[] | undefined)?.find((each) => each.spec.root !== undefined);
  const selector = root?.spec.root?.clusterSelector;
  if (spec?.clusterOwners === undefined || selector === undefined) return [];
  const owners = spec.clusterOwners(all);
  const owner = owners.get(cluster.name);
  const compared = selectorText("clusterSelector", selector, cluster.labels);
  const head = { rule: "root.clusterSelector" };
  if (owner === undefined) return [{ ...head, subset: "(every pod)", match: "no", why: compared }];
  const shards = new Set(owners.values()).size;
  const shares = `the hash of names divides ${counted(owners.size, "cluster")} between ${counted(shards, "shard")}`;
  return [{ ...head, subset: subsetDisplayName(owner), match: "yes", why: `${compared}; ${shares}` }];
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

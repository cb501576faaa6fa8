// What admission says an edit of a family moves: the routes before and after it, and a warning if shards get other
// pods. Pure.
import { autoOf, type ShardingConfig } from "../../api/sharding-config.ts";
import { nameList } from "../../base/name-list.ts";
import type { ClusterRules, Reroute } from "../apps/app.ts";
import { clusterRulesIn } from "./cluster-owners.ts";
import type { Family } from "./family.ts";
import { expectedPlacement, type Placement } from "./placement.ts";
import { routeOfShards } from "./shard-rules.ts";
import { type FamilyShards, shardsOf } from "./shards.ts";
import { storedPlacement } from "./stored-placement.ts";

/** The most shards that a warning names. */
const MAX_NAMES = 3;

/** An edit that gives shards other pods moves their namespaces, even if the route stays. */
export function podWarnings(before: ShardingConfig | undefined, after: ShardingConfig): string[] {
  const [old, root] = [before?.spec.root, after.spec.root];
  if (old === undefined || root === undefined || after.spec.paused === true) return [];
  const changed = [
    ...(old.targetStatefulSet === root.targetStatefulSet ? [] : ["spec.root.targetStatefulSet"]),
    ...(old.canary?.replicas === root.canary?.replicas ? [] : ["spec.root.canary.replicas"]),
    ...(autoOf(old).everyShardReplicas === autoOf(root).everyShardReplicas ? [] : ["spec.root.auto.everyShardReplicas"]),
  ];
  if (changed.length === 0) return [];
  const restarting = after.spec.onLoss === "InPlace" ? "" : " and are restarted";
  return [`${changed.join(" and ")}: shards get other pods, so most pods change their shard${restarting}`];
}

/** The namespaces of a shard that an edit removes or renames move at once, because its pods get another lock. */
export function removalWarnings(before: Family, after: Family): string[] {
  const { from, to } = shardsOfEdit(before, after);
  const left = new Set(to?.shards.map(({ name }) => name));
  const removed = to === undefined ? [] : (from?.shards ?? []).map(({ name }) => name).filter((name) => !left.has(name));
  if (removed.length === 0) return [];
  const whose =
    removed.length === 1 ? `shard ${removed[0]} is removed: its` : `shards ${nameList(removed, MAX_NAMES)} are removed: their`;
  return [`${whose} namespaces move at once, whatever spec.paused and spec.root.maxMovingPercent say`];
}

/** Names of namespaces by which to estimate what share of the namespaces in other clusters an edit moves. */
const SAMPLE = Array.from({ length: 1_000 }, (_, at) => `sample-${at}`);
/** An edit that moves a smaller share gets no warning. */
const RISKY_SHARE = 0.5;

/** Nobody who judges an edit knows the namespaces of other clusters. */
export function insideWarnings(before: Family, after: Family): string[] {
  const isInside = ({ root }: Family) => root?.spec.root?.clustersBy === "Namespace";
  const isPaused = after.configs.some(({ spec }) => spec.paused === true);
  if (isPaused || before.root === undefined || after.root === undefined) return [];
  const stop = removalWarnings(before, after).length === 0 ? "; spec.paused: true stops it" : "";
  if (isInside(before) !== isInside(after)) {
    return [`spec.root.clustersBy: in the clusters with interception Terminate most namespaces move to other owners${stop}`];
  }
  const { from, to } = shardsOfEdit(before, after);
  const [old, next] = [from, to].map((shards) => shards?.shardIn?.("cluster"));
  if (!isInside(after) || old === undefined || next === undefined) return [];
  const share = SAMPLE.filter((name) => old(name) !== next(name)).length / SAMPLE.length;
  if (share < RISKY_SHARE) return [];
  return [`may move about ${Math.round(share * 100)} % of the namespaces of other clusters to other owners${stop}`];
}

/**
 * The routes before and after an edit, as far as they are known without the pods and the namespaces; undefined if a
 * root has no placement yet. Both families must be valid.
 */
export function rerouteOf(before: Family, after: Family): Reroute | undefined {
  const { from, to, placement, expected } = shardsOfEdit(before, after);
  if (from === undefined || to === undefined) return undefined;
  const restarts = after.configs.some(({ spec }) => spec.onLoss !== "InPlace");
  const clusterRules = { before: rulesOfClusters(before, from, placement), after: rulesOfClusters(after, to, expected) };
  const routes = { before: routeOfShards(from), after: routeOfShards(to) };
  return { ...routes, clusterRules, restarts, isEstimate: after.root !== undefined };
}

function rulesOfClusters({ root }: Family, family: FamilyShards, placement: Placement | undefined): ClusterRules {
  return root === undefined ? {} : clusterRulesIn(root, { family, placement });
}

function shardsOfEdit(before: Family, after: Family) {
  const placement = before.root && storedPlacement(before.root);
  const expected = placement && placementAfter(before, after, placement);
  return { from: shardsOf(before, placement), to: shardsOf(after, expected), placement, expected };
}

function placementAfter(before: Family, after: Family, present: Placement): Placement {
  const [old, next] = [before.root?.spec.root, after.root?.spec.root];
  return old === undefined || next === undefined ? present : expectedPlacement(old, next, present);
}

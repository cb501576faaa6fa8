// Which ready shards of a root wait for namespaces, and why, as a text for its status. Pure.

import { autoOf, type ShardingConfig, type ShardingRoot } from "../../api/sharding-config.ts";
import { normalShardName } from "../../api/sharding-keys.ts";
import { nameList } from "../../base/name-list.ts";
import { holdMs } from "./membership.ts";
import type { Placement } from "./placement.ts";
import { storedPlacement } from "./stored-placement.ts";

/** The most reasons, and the most shards for each, that the text names. */
const MAX_NAMES = 3;

const UNKNOWN_CLUSTERS = ", and once the manager knows the namespaces of all other clusters or has waited for them for 1 minute";

/** Undefined if no shard waits. */
export function joiningText(config: ShardingConfig): string | undefined {
  const { root } = config.spec;
  const placement = storedPlacement(config);
  if (root === undefined || placement === undefined || placement.waiting.size === 0) return undefined;
  const byWait = Map.groupBy(placement.waiting.keys(), (shard) => waitText(placement, shard, root));
  const texts = [...byWait].map(([wait, shards]) => {
    const names = shards.map((shard) => normalShardName(root.prefix, shard));
    return `${nameList(names, MAX_NAMES)} ${names.length === 1 ? "is" : "are"} ready and will get namespaces ${wait}`;
  });
  return texts.length <= MAX_NAMES ? texts.join("; ") : `${texts.slice(0, MAX_NAMES).join("; ")}; others wait too`;
}

function waitText(placement: Placement, shard: number, root: ShardingRoot): string {
  const { joinsFromMs, losses, waiting } = placement;
  if (joinsFromMs !== undefined) {
    const budget = `spec.root.auto.maxMovedPercentPerHour, ${autoOf(root).maxMovedPercentPerHour} % of all`;
    return `from ${new Date(joinsFromMs).toISOString()}, because as many moved within an hour as the budget allows (${budget})`;
  }
  const loss = losses.get(shard);
  if (loss === undefined) {
    const clusters = root.clustersBy === "Namespace" ? UNKNOWN_CLUSTERS : "";
    return `together with shards that start${clusters}, after 10 minutes at the latest`;
  }
  const minutes = holdMs(loss) / 60_000;
  const holdText = minutes === 1 ? "1 minute" : `${minutes} minutes`;
  const lossesText = loss.times === 1 ? "1 loss" : `${loss.times} losses`;
  const sinceText = new Date(waiting.get(shard) ?? 0).toISOString();
  return `after ${holdText} without an interruption (since ${sinceText}), because of ${lossesText}`;
}

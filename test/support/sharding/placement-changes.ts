// Counts what each change of a root's stored placement moves, and how many shards it makes restart.
import type { ShardingConfig } from "../../../src/api/sharding-config.ts";
import { normalShardName } from "../../../src/api/sharding-keys.ts";
import { shardPlacer } from "../../../src/manager/sharding/children.ts";
import { numbersUpTo } from "../../../src/manager/sharding/membership.ts";
import { storedPlacement } from "../../../src/manager/sharding/stored-placement.ts";

export interface PlacementChange {
  readonly atMs: number;
  /** The shards that own namespaces. */
  readonly active: readonly number[];
  /** The number of namespaces that moved. */
  readonly moved: number;
  /** The number of shards that lost namespaces and still have pods: with `onLoss: Restart` these pods are restarted. */
  readonly losing: number;
}

export interface PlacementChanges {
  readonly all: readonly PlacementChange[];
  /** Call for each version of the root, in order. */
  add(config: ShardingConfig): void;
}

/** @param namespaces the namespaces to count */
export function countPlacementChanges(namespaces: readonly string[]): PlacementChanges {
  const all: PlacementChange[] = [];
  let ownerBefore: ((namespace: string) => string) | undefined;
  return {
    all,
    add(config) {
      const { root } = config.spec;
      const placement = storedPlacement(config);
      if (placement === undefined || root === undefined) return;
      const { active, shards } = placement;
      const ownerOf = shardPlacer(root, placement);
      const before = ownerBefore ?? ownerOf;
      ownerBefore = ownerOf;
      const moved = namespaces.filter((namespace) => before(namespace) !== ownerOf(namespace));
      if (moved.length === 0 && `${active}` === `${all.at(-1)?.active}`) return;
      const losers = new Set(moved.map(before));
      const losing = numbersUpTo(shards).filter((shard) => losers.has(normalShardName(root.prefix, shard)));
      all.push({ atMs: Date.now(), active, moved: moved.length, losing: losing.length });
    },
  };
}

/** How often the shard left while a shard with a higher number stayed: not by a scale-down. */
export function timesLost(changes: readonly PlacementChange[], shard: number): number {
  return changes.filter(({ active }, at) => {
    const before = changes[at - 1]?.active ?? [];
    return before.includes(shard) && !active.includes(shard) && active.some((other) => other > shard);
  }).length;
}

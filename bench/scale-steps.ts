// How many namespaces move and how many pods are restarted when a family with `placement: Balanced` and one pod for each shard is scaled in
// small or large steps. Computed by the map alone, without a cluster: node bench/scale-steps.ts
import { balancedMap, countNamespaces, type SlotMap, slotOf } from "../src/manager/sharding/balanced-map.ts";

/** The numbers of normal shards, one after the other. */
const WAYS: readonly (readonly number[])[] = [
  [2, 3, 4, 5, 6, 7, 8],
  [2, 4, 8],
  [2, 8],
  [8, 9, 10, 11, 12, 13, 14, 15, 16],
  [8, 16],
  [20, 21],
  [8, 7, 6, 5, 4, 3, 2],
  [8, 6, 4, 3, 2],
  [8, 2],
];
const NAMESPACES = [100, 1000];

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

function costOf(way: readonly number[], names: readonly string[]) {
  const counts = countNamespaces(names);
  let map: SlotMap = balancedMap(undefined, upTo(way[0] ?? 1), counts);
  let moves = 0;
  let restarts = 0;
  for (const shards of way.slice(1)) {
    const after = balancedMap(map, upTo(shards), counts);
    const moved = names.filter((name) => map[slotOf(name)] !== after[slotOf(name)]);
    moves += moved.length;
    // A shard that is gone has no pod to restart.
    restarts += new Set(moved.map((name) => map[slotOf(name)] ?? 0).filter((shard) => shard <= shards)).size;
    map = after;
  }
  return { moves, restarts };
}

for (const count of NAMESPACES) {
  const names = Array.from({ length: count }, (_, index) => `team-${index}`);
  for (const way of WAYS) {
    const { moves, restarts } = costOf(way, names);
    process.stdout.write(`${count} namespaces, shards ${way.join(", ")}: ${moves} moves, ${restarts} restarts\n`);
  }
}

// The metrics of each shard of each family. Invariant: a family has series of at most 65 shards, and they end
// with it.
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import { Counter, Gauge, type Registry } from "../../base/metrics.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { subsetOfDisplayName } from "../../mesh/ownership/words.ts";
import type { App, AppRef, Apps } from "../apps/app.ts";

export interface ShardMoves {
  readonly gained: number;
  readonly lost: number;
}

type Subsets = NonNullable<NonNullable<App["object"]["status"]>["subsets"]>;

interface ShardGauge {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  read(shard: Subsets[number]): number;
}

const GAUGES: readonly ShardGauge[] = [
  {
    name: "ctrlmesh_manager_shard_namespaces",
    help: "Namespaces that each shard of a family owns.",
    labelNames: ["family_namespace", "family", "shard"],
    read: ({ namespaces }) => namespaces,
  },
  {
    name: "ctrlmesh_manager_shard_pods",
    help: "Pods of each shard of a family.",
    labelNames: ["family_namespace", "family", "shard"],
    read: ({ pods = 0 }) => pods,
  },
  {
    name: "ctrlmesh_manager_shard_ready_pods",
    help: "Ready pods of each shard of a family.",
    labelNames: ["family_namespace", "family", "shard"],
    read: ({ readyPods }) => readyPods,
  },
];

/** Sums the moves of the families that it is told of. */
export function createShardMoves() {
  const byFamily = new Map<string, Map<string, ShardMoves>>();
  const keyOf = ({ namespace, name }: AppRef) => `${namespace}/${name}`;
  return {
    add(family: AppRef, moves: ReadonlyMap<string, ShardMoves>): void {
      if (family.kind !== SHARDING_CONFIGS.kind || moves.size === 0) return;
      const sums = byFamily.get(keyOf(family)) ?? new Map<string, ShardMoves>();
      byFamily.set(keyOf(family), sums);
      for (const [shard, { gained, lost }] of moves) {
        const sum = sums.get(shard) ?? { gained: 0, lost: 0 };
        sums.set(shard, { gained: sum.gained + gained, lost: sum.lost + lost });
      }
    },
    of: (family: AppRef, shard: string): ShardMoves => byFamily.get(keyOf(family))?.get(shard) ?? { gained: 0, lost: 0 },
    keepOnly(families: readonly AppRef[]): void {
      const kept = new Set(families.map(keyOf));
      for (const key of byFamily.keys()) if (!kept.has(key)) byFamily.delete(key);
    },
  };
}

/** @param apps those that this replica leads */
export function addShardMetrics(
  registers: Registry[],
  moves: ReturnType<typeof createShardMoves>,
  apps: () => ReturnType<Apps["list"]>,
): void {
  const families = () => apps().filter(({ ref }) => ref.kind === SHARDING_CONFIGS.kind);
  const shardsOf = ({ ref, object }: App) =>
    (object.status?.subsets ?? [])
      .filter(({ name }) => subsetOfDisplayName(name) !== DEFAULT_SUBSET)
      .map((shard) => ({ shard, labels: { family_namespace: ref.namespace, family: ref.name, shard: shard.name } }));
  for (const { read, ...described } of GAUGES) {
    new Gauge({
      ...described,
      registers,
      collect() {
        this.reset();
        for (const { shard, labels } of families().flatMap(shardsOf)) this.set(labels, read(shard));
      },
    });
  }
  new Counter({
    name: "ctrlmesh_manager_shard_moved_namespaces_total",
    help: "Namespaces that were given to each shard of a family, or taken from it, since this replica leads, by direction.",
    labelNames: ["family_namespace", "family", "shard", "direction"],
    registers,
    collect() {
      this.reset();
      const led = families();
      moves.keepOnly(led.map(({ ref }) => ref));
      for (const app of led) {
        for (const { shard, labels } of shardsOf(app)) {
          const { gained, lost } = moves.of(app.ref, shard.name);
          this.inc({ ...labels, direction: "gained" }, gained);
          this.inc({ ...labels, direction: "lost" }, lost);
        }
      }
    },
  });
}

// What the status of a family says beside that of every app: the balance of its shards, gaps and pods that
// stand by. Pure.
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { AppCounts, Description } from "../apps/app.ts";
import { countGaps, countOverlaps } from "./table-counts.ts";

/** The family as its status describes it. */
export interface DescribedFamily {
  readonly name: string;
  /** The names of a root's shards, the canary first; undefined for hand-written configs. */
  readonly children: readonly string[] | undefined;
  /** The shard of the object that has the status; undefined for a root. */
  readonly shard: string | undefined;
  /** The names of the shards that are to have equally many namespaces. */
  readonly normal: readonly string[];
}

/** Above this ratio of largest to mean a family is called skewed. */
const MAX_SKEW = 1.5;

export function describeFamily(family: DescribedFamily, { subsets, desired }: AppCounts): Description {
  const shards = subsets.filter(({ name }) => name !== DEFAULT_SUBSET);
  const shown = family.shard === undefined ? shards : shards.filter(({ name }) => name === family.shard);
  const sumOf = (count: (shard: (typeof shards)[number]) => number) => shown.reduce((sum, shard) => sum + count(shard), 0);
  const owned = shards.filter(({ name }) => family.normal.includes(name)).map(({ namespaces }) => namespaces);
  const balance = balanceOf(owned);
  return {
    fields: {
      family: family.name,
      ...(family.shard === undefined ? {} : { shard: family.shard }),
      shardPods: podsText({ readyPods: sumOf(({ readyPods }) => readyPods), pods: sumOf(({ pods = 0 }) => pods) }),
      shardNamespaces: sumOf(({ namespaces }) => namespaces),
      ...(family.children === undefined ? {} : { root: { childShardingConfigs: family.children } }),
      ...(owned.length === 0 ? {} : { balance }),
      gaps: countGaps(desired),
      overlaps: countOverlaps(desired),
      standby: subsets.find(({ name }) => name === DEFAULT_SUBSET)?.pods ?? 0,
    },
    balanced: verdict(owned, balance),
  };
}

/** "2/3": ready pods, and all pods. */
export function podsText({ readyPods, pods = 0 }: { readonly readyPods: number; readonly pods?: number | undefined }): string {
  return `${readyPods}/${pods}`;
}

interface Balance {
  readonly largest: number;
  readonly smallest: number;
  readonly mean: number;
  readonly skew: number;
}

function balanceOf(owned: readonly number[]): Balance {
  const mean = owned.reduce((sum, count) => sum + count, 0) / Math.max(1, owned.length);
  const largest = Math.max(0, ...owned);
  const smallest = owned.length === 0 ? 0 : Math.min(...owned);
  return { largest, smallest, mean: rounded(mean), skew: mean === 0 ? 1 : rounded(largest / mean) };
}

function verdict(owned: readonly number[], { largest, smallest, mean, skew }: Balance): NonNullable<Description["balanced"]> {
  if (owned.length <= 1) return { status: "True", reason: "OneShard", message: "there is only one normal shard" };
  const message = `${owned.length} normal shards own ${smallest} to ${largest} namespaces, ${mean} on average`;
  const isEven = skew <= MAX_SKEW || largest - mean < 1;
  return isEven ? { status: "True", reason: "Even", message } : { status: "False", reason: "Skewed", message };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

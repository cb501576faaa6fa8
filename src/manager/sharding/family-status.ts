// What the status of a family says in addition to that of every app. Pure. Invariant: the cost grows with the
// classes of the table, not with the namespaces.

import type { Condition } from "../../api/conditions.ts";
import { createResourceIndex } from "../../api/resource-match.ts";
import type { ShardingConfig, ShardingStatus } from "../../api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import type { GroupResource } from "../../kube/types.ts";
import { namespacesByClass } from "../../mesh/ownership/place-lists.ts";
import { DEFAULT_SUBSET, matchesResource, type RouteRule, type RouteTable, resourcesIn } from "../../mesh/ownership/table.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import type { App, AppCounts, Description } from "../apps/app.ts";
import { emptyLegacyShards, emptyShardsText } from "./empty-shards.ts";
import { isUneven } from "./evenness.ts";

interface DescribedFamily {
  readonly name: string;
  /** The names of a root's shards, the canary first; undefined for hand-written configs. */
  readonly children: readonly string[] | undefined;
  /** The shard of the object that has the status; undefined for a root. */
  readonly shard: string | undefined;
  /** The names of the shards that should own about the same number of namespaces. */
  readonly normal: readonly string[];
  /** The normal shards divide hashes: a root with placement Legacy. */
  readonly isByHash: boolean;
  /** A root's fixed number of normal shards; undefined: it follows the StatefulSet. */
  readonly shardingSize: number | undefined;
  /** Which ready shards of a root wait for namespaces, and why; undefined if none does. */
  readonly joiningText?: string | undefined;
  /** The shards divide the namespaces of other clusters too, so these count. Absent: false. */
  readonly dividesInside?: boolean | undefined;
}

export function describeFamily(family: DescribedFamily, { subsets, desired, abroad }: AppCounts): Description {
  const shards = subsets.filter(({ name }) => name !== DEFAULT_SUBSET);
  const shown = family.shard === undefined ? shards : shards.filter(({ name }) => name === family.shard);
  const sumOf = (count: (shard: (typeof shards)[number]) => number) => shown.reduce((sum, shard) => sum + count(shard), 0);
  // A whole cluster is one thing to divide, however many namespaces it has.
  const notPlaced = (name: string) => (family.dividesInside ? 0 : (abroad?.owned.get(name) ?? 0));
  const normals = shards.filter(({ name }) => family.normal.includes(name));
  const owned = normals.map(({ name, namespaces }) => namespaces - notPlaced(name));
  const unknown = family.dividesInside ? (abroad?.unknown ?? 0) : 0;
  const balance = balanceOf(owned);
  const standby = subsets.find(({ name }) => name === DEFAULT_SUBSET)?.pods ?? 0;
  return {
    fields: {
      family: family.name,
      shard: family.shard,
      shardPods: podsText(
        sumOf(({ readyPods }) => readyPods),
        sumOf(({ pods = 0 }) => pods),
      ),
      shardNamespaces: sumOf(({ namespaces }) => namespaces),
      root: family.children && { childShardingConfigs: family.children },
      balance: owned.length === 0 ? undefined : balance,
      gaps: countGaps(desired),
      overlaps: countOverlaps(desired),
      standby,
    },
    balanced: emptyVerdict(family) ?? standbyVerdict(family, standby) ?? verdict(owned, balance, family.joiningText, unknown),
  };
}

/** For example "2/3". */
function podsText(readyPods: number, pods = 0): string {
  return `${readyPods}/${pods}`;
}

function balanceOf(owned: readonly number[]) {
  const mean = owned.reduce((sum, count) => sum + count, 0) / Math.max(1, owned.length);
  const largest = Math.max(0, ...owned);
  const smallest = owned.length === 0 ? 0 : Math.min(...owned);
  return { largest, smallest, mean: rounded(mean), skew: mean === 0 ? 1 : rounded(largest / mean) };
}

type Balanced = NonNullable<Description["balanced"]>;

function emptyVerdict({ isByHash, normal }: DescribedFamily): Balanced | undefined {
  if (!isByHash || emptyLegacyShards(normal.length) === 0) return undefined;
  return { status: "False", reason: "EmptyShards", message: emptyShardsText(normal.length) };
}

/** Only if no further shard can come: otherwise the pods get one in a moment. */
function standbyVerdict({ children, normal, shardingSize }: DescribedFamily, pods: number): Balanced | undefined {
  const isFull = shardingSize !== undefined || normal.length >= MAX_NORMAL_SHARDS;
  if (children === undefined || pods === 0 || !isFull) return undefined;
  const many =
    shardingSize === undefined
      ? `there can be ${MAX_NORMAL_SHARDS} normal shards: raise spec.root.auto.everyShardReplicas`
      : `spec.root.auto.shardingSize is ${shardingSize}: raise or remove it`;
  const who = pods === 1 ? "1 pod belongs to no shard and stands by" : `${pods} pods belong to no shard and stand by`;
  return { status: "False", reason: "PodsWithoutShard", message: `${who}, since ${many}, or scale the StatefulSet down` };
}

function verdict(
  owned: readonly number[],
  { largest, smallest, mean }: ReturnType<typeof balanceOf>,
  joiningText: string | undefined,
  unknown: number,
): Balanced {
  if (owned.length <= 1) return { status: "True", reason: "OneShard", message: "there is only one normal shard" };
  const message = `${owned.length} normal shards own ${smallest} to ${largest} namespaces, ${mean} on average`;
  if (joiningText !== undefined) return { status: "False", reason: "Joining", message: `${joiningText}; ${message}` };
  if (unknown > 0) {
    const clusters = unknown === 1 ? "a cluster, which are" : `${unknown} clusters, which are`;
    return { status: "Unknown", reason: "NotKnown", message: `${message}, without the namespaces of ${clusters} not known` };
  }
  return isUneven(owned) ? { status: "False", reason: "Skewed", message } : { status: "True", reason: "Even", message };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

type SubsetRule = RouteRule & { readonly kind: "subset" };

/** The number of namespaces in which a resource that some shard names belongs to no shard. */
export function countGaps(table: RouteTable): number {
  const named = table.rules.filter(({ kind }) => kind === "sharded").flatMap(({ resources }) => resourcesIn(resources));
  return countNamespaces(table, (rules) => {
    const isOwned = ({ group, resource }: GroupResource) =>
      rules.some((rule) => rule.resources.length === 0 || matchesResource(rule.resources, group, resource));
    return !named.every(isOwned);
  });
}

/** The number of namespaces in which two shards name a common resource. The first shard owns it. */
export function countOverlaps(table: RouteTable): number {
  return countNamespaces(table, (rules) => {
    const earlier = createResourceIndex<SubsetRule>();
    // A config names each resource once, so entries with a common resource belong to two shards.
    return rules.some((rule) => {
      const isOverlap = earlier.firstOverlap(rule.resources) !== undefined;
      earlier.add(rule.resources, rule);
      return isOverlap;
    });
  });
}

function countNamespaces(table: RouteTable, holds: (rules: readonly SubsetRule[]) => boolean): number {
  const counted = table.classes.map((members) =>
    holds(members.flatMap((index) => (table.rules[index]?.kind === "subset" ? [table.rules[index]] : []))),
  );
  return namespacesByClass(table).reduce((sum, namespaces, index) => sum + (counted[index] ? namespaces : 0), 0);
}

/**
 * The status of a child, or of a hand-written config that is not the first one of its family. It follows from the
 * family's status, but only from what that says about its own shard. So changes of other shards do not write it.
 * @param now in RFC 3339
 */
export function memberStatus({ ref, object }: Pick<App, "ref" | "object">, member: ShardingConfig, now: string): ShardingStatus {
  const { generation = 0, name = "" } = member.metadata;
  const shard = object.status?.subsets?.find((each) => each.name === name);
  const family = object.status?.conditions?.find(({ type }) => type === "Ready");
  const ready = shard && family && readyOfShard(shard, family, object.metadata.name ?? "");
  const before = member.status?.conditions?.find(({ type }) => type === "Ready");
  return {
    observedGeneration: member.metadata.generation,
    family: ref.name,
    shard: name,
    shardPods: shard && podsText(shard.readyPods, shard.pods),
    shardNamespaces: shard?.namespaces,
    conditions: ready && [withTransitionTime({ type: "Ready", ...ready, observedGeneration: generation }, before, now)],
  };
}

type ShardReady = Pick<Condition, "status" | "reason" | "message">;

const FAULT_TEXTS: Readonly<Record<string, string>> = {
  SnapshotRefused: "a pod of the shard refused its snapshot",
  OwnershipConflict: "a pod of the shard is not under control of the family",
  NotIntercepted: "a pod of the shard has no proxy",
  SubsetWithoutPods: "no pod of the shard is ready, so no pod reconciles its namespaces",
  ProxiesBehind: "a proxy of the shard does not enforce the newest route",
  ProxyLost: "a proxy of the shard is disconnected",
};

function readyOfShard(
  { reason, namespaces }: NonNullable<ShardingStatus["subsets"]>[number],
  family: Condition,
  head: string,
): ShardReady {
  const more = `the status of ShardingConfig ${head} says more`;
  if (family.reason === "Invalid" || family.reason === "NotPlaced") {
    return { status: "False", reason: family.reason, message: `the family has no new route; ${more}` };
  }
  if (reason !== undefined) {
    return { status: "False", reason, message: `${FAULT_TEXTS[reason] ?? "the shard is not ready"}; ${more}` };
  }
  if (namespaces === 0) return { status: "True", reason: "Idle", message: "the shard owns no namespaces" };
  return { status: "True", reason: "Serving", message: "the pods of the shard serve its namespaces" };
}

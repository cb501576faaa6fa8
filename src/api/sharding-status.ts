// The status of a ShardingConfig: that of an app, with its family and its shard. The invariants of
// app-status.ts hold.
import { optional, z } from "zod";
import { appStatusSchema } from "./app-status.ts";
import { timestampSchema } from "./conditions.ts";
import { atomicList, countSchema, int, MAX_INT32, textUpTo } from "./fields.ts";
import { MAX_NORMAL_SHARDS } from "./sharding-keys.ts";

const balanceSchema = z.object({
  largest: countSchema.describe("Namespaces of the normal shard that owns most."),
  smallest: countSchema.describe("Namespaces of the normal shard that owns fewest."),
  mean: z.number().min(0).describe("Mean number of namespaces of a normal shard."),
  skew: z.number().min(0).describe("Largest divided by mean; 1 is a perfect balance."),
});

const rolloutSchema = z.object({
  revision: optional(textUpTo(253)).describe("Revision of the StatefulSet that is rolled out."),
  shard: optional(textUpTo(63)).describe("Shard whose pods are restarted; default for pods of no shard."),
  pod: optional(textUpTo(253)).describe("Pod that is restarted next, or that has just been evicted."),
  done: countSchema.describe("Ready pods with that revision."),
  total: countSchema.describe("Pods that are to have that revision."),
  waitingFor: optional(textUpTo(64)).describe(
    "Reason of the wait, for example NotReady, NotInjected, NotAcknowledged, LeaderUnknown, Soaking, Paused, PodDisruptionBudget or NotOnDelete; absent if every pod is done.",
  ),
  message: optional(textUpTo(1024)).describe("The state as a sentence."),
});

const labelsSchema = z.object({
  total: countSchema.describe("Namespaces and objects that are to have the labels."),
  labelled: countSchema.describe("Those of them that have the labels."),
  complete: atomicList(textUpTo(317), 256).describe(
    "Resources of which every object is known to have its labels, while the policy that labels new objects is in force.",
  ),
  waitingFor: optional(textUpTo(64)).describe(
    "What a resource waits for, for example Labelling, OptedOut, NoPolicy, Forbidden or Failing; absent if all are complete.",
  ),
  message: optional(textUpTo(1024)).describe("The state as a sentence."),
});

const shardNumberSchema = int(1, MAX_NORMAL_SHARDS);
/** In base64, a map with a byte for each slot has 1,368 characters. */
const mapSchema = textUpTo(2_048);
/** The most entries that `moves` may have. */
export const MAX_MOVES = 32;

export const placementSchema = z.object({
  start: int(0, MAX_INT32).describe("Ordinal of the StatefulSet's first pod."),
  shards: shardNumberSchema.describe("Number of normal shards that the root should have."),
  active: atomicList(shardNumberSchema, MAX_NORMAL_SHARDS).describe(
    "Numbers of the normal shards that own namespaces, ascending.",
  ),
  away: optional(z.record(z.string(), timestampSchema)).describe("Active shards without a ready pod, and since when."),
  noneReadySince: optional(timestampSchema).describe("Since when no shard has a ready pod; absent if one has."),
  waiting: optional(z.record(z.string(), timestampSchema)).describe(
    "Ready shards that do not own namespaces yet, and since when they are ready.",
  ),
  losses: optional(
    z.record(
      z.string(),
      z.object({
        times: countSchema.describe("Number of losses."),
        last: timestampSchema.describe("Time of the last loss."),
      }),
    ),
  ).describe("Shards that lost their namespaces because none of their pods was ready for the grace time."),
  moves: atomicList(
    z.object({
      at: timestampSchema.describe("When the shards changed."),
      namespaces: countSchema.describe("Namespaces that this change moved, and hashes of cluster-scoped names."),
    }),
    MAX_MOVES,
  ).describe("Moves of the last hour, the oldest first."),
  joinsFrom: optional(timestampSchema).describe(
    "Time before which the waiting shards get no namespaces, because the budget of moves is used up.",
  ),
  unevenSince: optional(timestampSchema).describe(
    "Since when the shards own uneven numbers of namespaces; absent if they are even.",
  ),
  canaryNamespace: optional(textUpTo(63)).describe(
    "The namespace that the canary owns because root.canary.percent selects no other one, for example 5 % of ten.",
  ),
  map: optional(mapSchema).describe("With placement Balanced: the shard of each of 1,024 slots, a byte for each, in base64."),
  clusterMap: optional(mapSchema).describe(
    "With clusterScoped ByName: the shard of each of the 32 hashes of cluster-scoped names, a byte for each, in base64.",
  ),
});

export const shardingStatusSchema = appStatusSchema.extend({
  family: optional(textUpTo(63)).describe("Name of the family that the object belongs to."),
  shard: optional(textUpTo(63)).describe("Name of the shard that the object describes; absent in a root."),
  shardPods: optional(textUpTo(32)).describe(
    "Ready pods of the shard, and all of its pods, for example 2/2. In a root: of all shards.",
  ),
  shardNamespaces: optional(countSchema).describe(
    "Number of namespaces that the shard owns. In a root: that all shards own together.",
  ),
  root: optional(
    z.object({
      childShardingConfigs: atomicList(textUpTo(63), MAX_NORMAL_SHARDS + 1).describe("Names of the children, the canary first."),
    }),
  ).describe("The children of a root; absent in other objects."),
  placement: optional(placementSchema).describe(
    "Which normal shards of a root own namespaces, and which; absent in other objects. The manager stores its decision here before it uses it.",
  ),
  rollout: optional(rolloutSchema).describe(
    "The rollout of the StatefulSet; absent unless it has the label ctrlmesh.kusionstack.io/rolling.",
  ),
  labels: optional(labelsSchema).describe("The labels of labelObjects; absent unless labelObjects is true."),
  balance: optional(balanceSchema).describe("How evenly the normal shards divide the namespaces."),
  gaps: optional(countSchema).describe("Namespaces in which a named resource belongs to no shard."),
  overlaps: optional(countSchema).describe(
    "Namespaces of which two shards select a common resource. The shard whose name comes first owns it.",
  ),
  standby: optional(countSchema).describe("Pods of the family that belong to no shard. They own nothing of the named resources."),
});

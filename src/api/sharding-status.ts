// The status of a ShardingConfig: that of an app, with its family and its shard. The invariants of
// app-status.ts hold.
import { optional, z } from "zod";
import { appStatusSchema } from "./app-status.ts";
import { atomicList, countSchema, textUpTo } from "./fields.ts";
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
    "Reason of the wait, for example NotReady, NotAcknowledged, LeaderUnknown, Soaking, Paused, PodDisruptionBudget or NotOnDelete; absent if every pod is done.",
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

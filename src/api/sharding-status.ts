// The status of a ShardingConfig: that of an app, with the family and the shard that the object shows.
// Invariant: as in app-status.ts, counts and no list of namespaces; every field is optional.
import { z } from "zod";
import { appStatusSchema } from "./app-status.ts";
import { conditionsSchema } from "./conditions.ts";
import { MAX_NORMAL_SHARDS } from "./sharding-keys.ts";
import { MAX_INT32 } from "./structural-schema.ts";

const countSchema = z.int().min(0).max(MAX_INT32);

const balanceSchema = z.object({
  largest: countSchema.describe("Namespaces of the normal shard that owns most."),
  smallest: countSchema.describe("Namespaces of the normal shard that owns fewest."),
  mean: z.number().min(0).describe("Mean number of namespaces of a normal shard."),
  skew: z.number().min(0).describe("Largest divided by mean; 1 is a perfect balance."),
});

const rolloutSchema = z.object({
  revision: z.string().max(253).optional().describe("Revision of the StatefulSet that is rolled out."),
  shard: z.string().max(63).optional().describe("Shard whose pods are restarted; default for pods of no shard."),
  pod: z.string().max(253).optional().describe("Pod that is restarted next, or that has just been evicted."),
  done: countSchema.describe("Ready pods with that revision."),
  total: countSchema.describe("Pods that are to have that revision."),
  waitingFor: z
    .string()
    .max(64)
    .optional()
    .describe(
      "Reason of the wait, for example NotReady, NotAcknowledged, LeaderUnknown, Soaking, Paused, PodDisruptionBudget or NotOnDelete; absent if every pod is done.",
    ),
  message: z.string().max(1024).optional().describe("The state as a sentence."),
});

const labelsSchema = z.object({
  total: countSchema.describe("Namespaces and objects that are to have the labels."),
  labelled: countSchema.describe("Those of them that have the labels."),
  complete: z
    .array(z.string().max(317))
    .max(256)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(
      "Resources of which every object is known to have its labels, while the policy that labels new objects is in force.",
    ),
  waitingFor: z
    .string()
    .max(64)
    .optional()
    .describe(
      "What a resource waits for, for example Labelling, OptedOut, NoPolicy, Forbidden or Failing; absent if all are complete.",
    ),
  message: z.string().max(1024).optional().describe("The state as a sentence."),
});

export const shardingStatusSchema = appStatusSchema.extend({
  family: z.string().max(63).optional().describe("Name of the family that the object belongs to."),
  shard: z.string().max(63).optional().describe("Name of the shard that the object describes; absent in a root."),
  shardPods: z
    .string()
    .max(32)
    .optional()
    .describe("Ready pods of the shard, and all of its pods, for example 2/2. In a root: of all shards."),
  shardNamespaces: countSchema
    .optional()
    .describe("Number of namespaces that the shard owns. In a root: that all shards own together."),
  root: z
    .object({
      childShardingConfigs: z
        .array(z.string().max(63))
        .max(MAX_NORMAL_SHARDS + 1)
        .optional()
        .meta({ "x-kubernetes-list-type": "atomic" })
        .describe("Names of the children, the canary first."),
    })
    .optional()
    .describe("The children of a root; absent in other objects."),
  rollout: rolloutSchema
    .optional()
    .describe("The rollout of the StatefulSet; absent unless it has the label ctrlmesh.kusionstack.io/rolling."),
  labels: labelsSchema.optional().describe("The labels of labelObjects; absent unless labelObjects is true."),
  balance: balanceSchema.optional().describe("How evenly the normal shards divide the namespaces."),
  gaps: countSchema.optional().describe("Namespaces in which a named resource belongs to no shard."),
  overlaps: countSchema
    .optional()
    .describe("Namespaces of which two shards select a common resource. The shard whose name comes first owns it."),
  standby: countSchema
    .optional()
    .describe("Pods of the family that belong to no shard. They own nothing of the named resources."),
  conditions: conditionsSchema.optional().describe("The conditions of the app, Ready first, which summarizes the others."),
});

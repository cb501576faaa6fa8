// The kind ShardingConfig: one shard of an operator, or the root of a family of shards. Invariant: it has
// each field of KusionStack's kind, with the same spelling.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { clustersFromSchema } from "./clusters-from.ts";
import { celRules } from "./extensions.ts";
import { int, nonEmptyList } from "./fields.ts";
import { AGE_COLUMN, conditionColumns, defineKind, integerColumn, KUSIONSTACK_GROUP, textColumn } from "./kind.ts";
import { labelSelectorSchema, nonEmptySelector } from "./label-selector.ts";
import { HASH_VALUE, limitSelectorSchema, MAX_LISTED_NAMESPACES, WRONG_HASH } from "./limit-selector.ts";
import { dnsLabelSchema, dnsSubdomainSchema } from "./names.ts";
import { appMetadataSchema, frozenSchema, guardSchema, onLossSchema, pausedSchema, webhookSchema } from "./operator-fields.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { withRules } from "./rule.ts";
import { canaryCel, clustersByCel, configCel, configRules, selectorCel, specCel, specRules } from "./sharding-config-rules.ts";
import { MAX_NORMAL_SHARDS, MAX_PREFIX_LENGTH } from "./sharding-keys.ts";
import { shardingStatusSchema } from "./sharding-status.ts";

const MAX_LIMITS = 32;
/** The selector of a child lists its pods, so their number is bounded. */
const MAX_SHARD_PODS = 128;
/** The pods of the normal shards and of the canary. */
export const MAX_FAMILY_PODS = (MAX_NORMAL_SHARDS + 1) * MAX_SHARD_PODS;
const MAX_GRACE_SECONDS = 86_400;
const DEFAULT_GRACE_SECONDS = 600;
const DEFAULT_SHARD_PODS = 1;
const DEFAULT_MOVED_PERCENT = 200;
/** The pods' label controller-revision-hash, of at most 63 characters, has the name, "-" and a hash of 10. */
const MAX_STATEFUL_SET_NAME = 52;
const MAX_SOAK_SECONDS = 604_800;

// Never a default: the user may have misspelled the field, and the API server removes a field that it does not know.
const ALL_RESOURCES = 'write "*" as group and resource for all resources, which KusionStack means without this field';

const limitSchema = z.strictObject({
  relateResources: nonEmptyList(resourceMatchSchema, 32, ALL_RESOURCES).describe(
    "Resources that this entry names. A resource that no entry names belongs to all pods.",
  ),
  selector: optional(limitSelectorSchema).describe(
    "Selects objects of these resources. Two keys are computed from the object's namespace: ctrlmesh.kusionstack.io/namespace is its name, ctrlmesh.kusionstack.io/shard-hash is the sum of the bytes of its name modulo 32. All other keys are labels of the object. The default selects all objects.",
  ),
});

const canarySchema = z
  .strictObject({
    replicas: int(1, MAX_SHARD_PODS).describe(
      "Number of pods of the canary shard: those with the lowest ordinals of the StatefulSet.",
    ),
    inNamespaces: optional(nonEmptyList(dnsLabelSchema, MAX_LISTED_NAMESPACES)).describe(
      "Names of namespaces that the canary shard owns.",
    ),
    inShardHash: nonEmptyList(
      z.string({ error: 'must be a string from "0" to "31", in quotes' }).max(2).regex(HASH_VALUE, { error: WRONG_HASH }),
      32,
    )
      .optional()
      .describe(
        'Values of ctrlmesh.kusionstack.io/shard-hash, from "0" to "31": the canary shard owns the namespaces with these hashes.',
      ),
    percent: optional(int(1, 99)).describe(
      "Percentage of all namespaces that the canary shard owns. A larger value adds namespaces and removes none. The canary shard owns each namespace that percent, inNamespaces or inShardHash selects.",
    ),
  })
  .meta(celRules(canaryCel));

const autoSchema = z.strictObject({
  everyShardReplicas: optional(int(1, MAX_SHARD_PODS))
    .meta({ default: DEFAULT_SHARD_PODS })
    .describe("Number of pods of each normal shard. The default is 1."),
  shardingSize: optional(int(1, MAX_NORMAL_SHARDS)).describe(
    "Number of normal shards. By default it follows the StatefulSet: the replicas without those of the canary, divided by everyShardReplicas, rounded up.",
  ),
  graceSeconds: optional(int(0, MAX_GRACE_SECONDS))
    .meta({ default: DEFAULT_GRACE_SECONDS })
    .describe(
      "Time in seconds for which a shard without a ready pod keeps its namespaces, before other shards get them. The default is 600, twice the longest time that the kubelet waits before it starts a crashed container again.",
    ),
  maxMovedPercentPerHour: optional(int(1, 10_000))
    .meta({ default: DEFAULT_MOVED_PERCENT })
    .describe(
      "Budget of moves, in percent of all namespaces: once so many have moved between the normal shards within an hour, no further shard gets namespaces until enough of the moves are an hour old. The default is 200.",
    ),
});

const rolloutSchema = z.strictObject({
  soakSeconds: optional(int(0, MAX_SOAK_SECONDS))
    .meta({ default: 0 })
    .describe(
      "Time in seconds for which all restarted pods of a shard must have been ready before the next shard begins. The default is 0.",
    ),
  paused: optional(z.boolean()).meta({ default: false }).describe("If true, no further pod is restarted. The default is false."),
});

const rootSchema = z
  .strictObject({
    prefix: z
      .string()
      .min(1)
      .max(MAX_PREFIX_LENGTH)
      .regex(/^[a-z0-9]+(-{1,2}[a-z0-9]+)*-?$/, {
        error:
          'must consist of lower-case letters, digits and "-" without "---", and begin with a letter or digit: the shards are named PREFIX-0-canary and PREFIX-1-normal',
      })
      .describe("Beginning of the names of the shards: PREFIX-0-canary, PREFIX-1-normal, PREFIX-2-normal and so on."),
    targetStatefulSet: dnsSubdomainSchema
      .max(MAX_STATEFUL_SET_NAME)
      .describe("Name of the operator's StatefulSet, in the namespace of this object."),
    disable: optional(z.boolean()).describe(
      "If true, the shards are removed as if this object were deleted. The object itself stays.",
    ),
    canary: optional(canarySchema).describe("The canary shard. By default there is none."),
    auto: optional(autoSchema)
      .meta({ default: {} })
      .describe("Number and size of the normal shards. By default each pod that is not the canary's is a shard."),
    rollout: optional(rolloutSchema).describe(
      "How a new version of the StatefulSet is rolled out, shard by shard. The StatefulSet needs the label ctrlmesh.kusionstack.io/rolling and the update strategy OnDelete.",
    ),
    placement: optional(z.enum(["Legacy", "Balanced"]))
      .meta({ default: "Legacy" })
      .describe(
        "How the normal shards divide the namespaces that the canary shard does not own. Legacy (the default): by 32 hashes of their names, as KusionStack does. Balanced: each shard gets about the same number of namespaces, and a change of the number of shards moves as few as possible.",
      ),
    maxMovingPercent: optional(int(1, 100)).describe(
      "Limit of moves, in percent of all namespaces: an edit, or a new number of shards, that would move more waits. Until it is confirmed, every namespace keeps its present owner, as with paused. The condition Converged says how to confirm it. The default is no limit.",
    ),
    clusterScoped: optional(z.enum(["Home", "ByName"]))
      .meta({ default: "Home" })
      .describe(
        "Owners of the cluster-scoped objects of the named resources, other than namespaces. Home (the default): the first normal shard owns all of them. ByName: the shards divide them by the hash of their names, from 0 to 31, as they divide namespaces.",
      ),
    clusterSelector: optional(labelSelectorSchema).describe(
      "Other clusters that the normal shards divide: the MeshClusters of the namespace with these labels. Each shard owns about the same number of whole clusters. An empty selector selects all. By default none is divided, or with clustersFrom all.",
    ),
    clustersFrom: optional(clustersFromSchema).describe(
      "Other clusters that the normal shards divide: those that a PlacementDecision names. With clusterSelector, only those of them that it selects. Selected clusters that the PlacementDecision does not name belong to no shard: no pod can reach them. While there is no such PlacementDecision, the shards keep the clusters that they have.",
    ),
    clustersBy: optional(z.enum(["Cluster", "Namespace"]))
      .meta({ default: "Cluster" })
      .describe(
        "How the normal shards divide the other clusters. Cluster (the default): each cluster belongs to one shard. Namespace: inside each cluster whose MeshCluster has interception Terminate, the shards, with the canary, divide the namespaces as at home. The other clusters are divided as with Cluster. Needs clusterSelector or clustersFrom.",
      ),
    resourceSelector: nonEmptyList(limitSchema, MAX_LIMITS, "it names the resources that the shards divide").describe(
      "Resources that the shards divide. Each shard owns its share of the objects that an entry selects.",
    ),
  })
  .meta(celRules(clustersByCel));

const shardingConfigSpecSchema = withRules(
  z
    .strictObject({
      selector: optional(nonEmptySelector(selectorCel)).describe(
        "Selects the shard's pods, in the namespace of this object. Required unless root is set. Beside root it leaves out no pod, because all pods of the StatefulSet belong to the family: the status names a pod that it does not match. The selector must not be empty, and cannot be changed.",
      ),
      controller: optional(
        z.strictObject({
          leaderElectionName: dnsSubdomainSchema.describe(
            "Name of the operator's leader-election lock. Each shard has its own lock NAME---SHARD. The ShardingConfigs of a namespace with the same lock form a family. The name cannot be changed; only a root may set it later.",
          ),
        }),
      ).describe("The operator's controllers."),
      webhook: webhookSchema,
      limits: optional(nonEmptyList(limitSchema, MAX_LIMITS)).describe(
        "Resources of which the shard owns only the selected objects. Required unless root is set; without effect beside root.",
      ),
      root: optional(rootSchema).describe(
        "Makes this object the root of a family: the manager divides a StatefulSet into shards, and creates a ShardingConfig for each.",
      ),
      labelObjects: optional(z.boolean()).describe(
        "If true, the manager labels all namespaces, and the objects of the resources that this object names, with ctrlmesh.kusionstack.io/namespace and ctrlmesh.kusionstack.io/shard-hash. The resources must be named without *. The default is false. Nothing removes the labels again.",
      ),
      // No defaults: the manager creates children without these fields, and would patch a default away again
      // and again.
      onLoss: onLossSchema("shard"),
      paused: pausedSchema,
      guard: guardSchema("shard"),
      frozen: frozenSchema,
    })
    .meta(celRules(...specCel)),
  specRules,
);

const READY = conditionColumns("Ready");

const definition = defineKind({
  group: KUSIONSTACK_GROUP,
  kind: "ShardingConfig",
  plural: "shardingconfigs",
  shortName: "shard",
  description:
    "ShardingConfig describes one shard of an operator: its pods, and the objects that they own. With root, it divides a whole StatefulSet into such shards.",
  columns: [
    textColumn("Family", ".status.family", "Family of the object."),
    textColumn("Shard", ".status.shard", "Shard of the object; empty for a root."),
    textColumn("Pods", ".status.shardPods", "Ready pods, and all pods."),
    integerColumn("Namespaces", ".status.shardNamespaces", "Namespaces that the shard owns, or all shards of a root."),
    conditionColumns("Balanced").status,
    READY.status,
    READY.reason,
    AGE_COLUMN,
    READY.message,
  ],
  metadata: appMetadataSchema,
  spec: shardingConfigSpecSchema.describe("One shard of an operator, or the root of a family of shards."),
  status: shardingStatusSchema,
});

export const shardingConfigKind = {
  ...definition,
  schema: withRules(definition.schema.meta(celRules(configCel)), configRules),
};

export type ShardingConfig = Immutable<z.output<typeof shardingConfigKind.schema>>;
export type ShardingConfigSpec = Immutable<z.output<typeof shardingConfigSpecSchema>>;
export type ShardingRoot = Immutable<z.output<typeof rootSchema>>;
export type ShardingStatus = Immutable<z.output<typeof shardingStatusSchema>>;

/** The number and the size of the normal shards, with the defaults that an older CRD does not write. */
export function autoOf({ auto }: Pick<ShardingRoot, "auto">) {
  return {
    ...auto,
    everyShardReplicas: auto?.everyShardReplicas ?? DEFAULT_SHARD_PODS,
    graceSeconds: auto?.graceSeconds ?? DEFAULT_GRACE_SECONDS,
    maxMovedPercentPerHour: auto?.maxMovedPercentPerHour ?? DEFAULT_MOVED_PERCENT,
  };
}

export function validateShardingConfig(object: unknown): ValidationResult<ShardingConfig> {
  return validate(shardingConfigKind.schema, object);
}

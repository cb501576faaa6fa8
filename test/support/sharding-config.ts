// Valid ShardingConfigs for tests, and the problems that the validation finds.
import { formatProblem } from "../../src/api/problems.ts";
import { validateShardingConfig } from "../../src/api/sharding-config.ts";
import type { Placement } from "../../src/manager/sharding/placement.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A new valid hand-written config; `spec` replaces fields of its spec. */
export function sampleShardingConfig(spec: Fields = {}): Record<string, unknown> {
  return {
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "ShardingConfig",
    metadata: { name: "shop-east", namespace: "ops" },
    spec: {
      selector: { matchLabels: { shard: "east" } },
      controller: { leaderElectionName: "shop-lock" },
      limits: [
        {
          relateResources: [{ apiGroups: [""], resources: ["pods", "services"] }],
          selector: {
            matchExpressions: [{ key: "ctrlmesh.kusionstack.io/namespace", operator: "In", values: ["east-a", "east-b"] }],
          },
        },
      ],
      ...spec,
    },
  };
}

/** A new valid root; `root` replaces fields of spec.root, and `spec` replaces other fields of the spec. */
export function sampleShardingRoot(root: Fields = {}, spec: Fields = {}): Record<string, unknown> {
  return {
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "ShardingConfig",
    metadata: { name: "shop", namespace: "ops" },
    spec: {
      controller: { leaderElectionName: "shop-lock" },
      root: {
        prefix: "shop",
        targetStatefulSet: "shop-operator",
        canary: { replicas: 1, inNamespaces: ["canary-a"] },
        auto: { shardingSize: 3, everyShardReplicas: 2 },
        resourceSelector: [{ relateResources: [{ apiGroups: [""], resources: ["pods", "services"] }] }],
        ...root,
      },
      ...spec,
    },
  };
}

/** A resource with its API group. */
type GroupResource = readonly [group: string, resource: string];

/**
 * A new root of shards with one pod each, balanced. Its lock has the root's name, and the shards' names begin with that of the StatefulSet.
 * @param root adds or replaces fields of spec.root
 */
export function familyRoot(
  metadata: { readonly namespace: string; readonly name: string },
  { statefulSet, resources, ...root }: Fields & { readonly statefulSet: string; readonly resources: readonly GroupResource[] },
) {
  return {
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "ShardingConfig",
    metadata,
    spec: {
      controller: { leaderElectionName: metadata.name },
      onLoss: "InPlace",
      root: {
        prefix: statefulSet,
        targetStatefulSet: statefulSet,
        placement: "Balanced",
        auto: { everyShardReplicas: 1 },
        resourceSelector: resources.map(([group, resource]) => ({
          relateResources: [{ apiGroups: [group], resources: [resource] }],
        })),
        ...root,
      },
    },
  };
}

/** The problems of an object, one line each; empty if the object is valid. */
export function shardingProblemsOf(object: unknown): string[] {
  const result = validateShardingConfig(object);
  return result.ok ? [] : result.problems.map(formatProblem);
}

/** A placement of two shards that are both ready; `fields` replaces some of its fields. */
export function samplePlacement(fields: Partial<Placement> = {}): Placement {
  return {
    start: 0,
    shards: 2,
    active: [1, 2],
    away: new Map(),
    noneReadySinceMs: undefined,
    waiting: new Map(),
    losses: new Map(),
    joinsFromMs: undefined,
    moves: [],
    unevenSinceMs: undefined,
    canaryNamespace: undefined,
    map: undefined,
    clusterMap: undefined,
    ...fields,
  };
}

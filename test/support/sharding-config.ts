// Valid ShardingConfigs for tests, and the problems that the validation finds.
import { formatProblem } from "../../src/api/problems.ts";
import { validateShardingConfig } from "../../src/api/sharding-config.ts";

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

/** The problems of an object, one line each; empty if the object is valid. */
export function shardingProblemsOf(object: unknown): string[] {
  const result = validateShardingConfig(object);
  return result.ok ? [] : result.problems.map(formatProblem);
}

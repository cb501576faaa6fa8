// Reads the demo's ShardingConfig and StatefulSet from their YAML files, with the names that follow from them.
import { validateShardingConfig } from "../../../src/api/sharding-config.ts";
import { canaryShardName, normalShardName } from "../../../src/api/sharding-keys.ts";
import { MeshError } from "../../../src/base/errors.ts";
import type { StatefulSet } from "../../../src/kube/client/resources.ts";
import type { Setting } from "../act.ts";
import { readManifests } from "../manifests.ts";
import type { PodPlan } from "../pods.ts";

export const CONFIG_FILE = "examples/demo/sharding/shardingconfig.yaml";
const STATEFUL_SET_FILE = "examples/demo/sharding/statefulset.yaml";
const NAMESPACES_FILE = "examples/demo/sharding/namespaces.yaml";
const POD_NAME = "statefulset.kubernetes.io/pod-name";

export interface Family {
  readonly setting: Setting;
  readonly statefulSet: string;
  /** Its pods at the beginning. */
  readonly replicas: number;
  readonly canary: { readonly shard: string; readonly namespaces: readonly string[] };
  /** The shards of a StatefulSet of that size, the canary first. Each has one pod. */
  shardsOf(replicas: number): string[];
  /** The pod with that ordinal, as the StatefulSet controller makes it. */
  podOf(ordinal: number): PodPlan;
}

export function readFamily(): Family {
  const checked = validateShardingConfig(readManifests(CONFIG_FILE)[0]?.object);
  const root = checked.ok ? checked.value.spec.root : undefined;
  if (!checked.ok || root === undefined) throw new MeshError("BAD_CONFIG", `reading ${CONFIG_FILE}: not a valid root`);
  const { metadata, spec } = checked.value;
  const statefulSet = readManifests(STATEFUL_SET_FILE)[0]?.object as StatefulSet;
  const appName = metadata.name ?? "";
  const shardOf = (ordinal: number) => (ordinal === 0 ? canaryShardName(root.prefix) : normalShardName(root.prefix, ordinal));
  return {
    setting: {
      manifests: [NAMESPACES_FILE, STATEFUL_SET_FILE, CONFIG_FILE],
      namespace: metadata.namespace ?? "",
      appName,
      lockName: spec.controller?.leaderElectionName ?? "",
    },
    statefulSet: root.targetStatefulSet,
    replicas: statefulSet.spec?.replicas ?? 1,
    canary: { shard: shardOf(0), namespaces: root.canary?.inNamespaces ?? [] },
    shardsOf: (replicas) => Array.from({ length: replicas }, (_, ordinal) => shardOf(ordinal)),
    podOf(ordinal) {
      const name = `${root.targetStatefulSet}-${ordinal}`;
      return { name, labels: { component: appName, [POD_NAME]: name }, subset: shardOf(ordinal) };
    },
  };
}

// Labels, annotations, computed selector keys and names of children, with KusionStack's spellings. Pure.
import { KUSIONSTACK_GROUP } from "./kind.ts";

export const SHARDING_PREFIX = `${KUSIONSTACK_GROUP}/`;

/** Computed key in the selector of a limit: the hash of the namespace, as a decimal number. */
export const SHARD_HASH = `${SHARDING_PREFIX}shard-hash`;

/** Computed key in the selector of a limit: the name of the namespace. */
export const NAMESPACE = `${SHARDING_PREFIX}namespace`;

/**
 * Computed key in the selectors of children only: the name of the shard to which the root assigns the
 * namespace.
 */
export const SHARD = `${SHARDING_PREFIX}shard`;

/** Label on a namespace. With any value other than "true" the manager labels neither it nor its objects. */
export const CONTROL = `${SHARDING_PREFIX}control`;

/** Label on a child: the name of its root. */
export const AUTO_SHARDING_ROOT = `${SHARDING_PREFIX}auto-sharding-root`;

/** Labels of a pod that asks for the proxy with the value "true". None is needed. */
export const PROXY_REQUESTS = [`${SHARDING_PREFIX}enable-proxy`, `${SHARDING_PREFIX}inject-proxy`] as const;

/**
 * Label of a pod that was injected for a shard: the name of the shard. It is for users only. Nothing reads
 * it, since it is not changed when the shards change.
 */
export const SHARD_INJECTED = `${SHARDING_PREFIX}sharding-config-injected`;

/**
 * Label on a root's StatefulSet, to roll it out by shards: names of shards, or parts of names, joined by "_".
 * "" and "all" mean every shard.
 */
export const ROLLING = `${SHARDING_PREFIX}rolling`;

/**
 * Annotation that the manager writes on the root of such a StatefulSet: the revision that each pod has or is
 * to get.
 */
export const ROLL_EXPECTED = `${SHARDING_PREFIX}roll-expected`;

/** Label on each pod of a StatefulSet. */
export const POD_NAME = "statefulset.kubernetes.io/pod-name";

export const MAX_NORMAL_SHARDS = 64;

export function canaryShardName(prefix: string): string {
  return `${prefix}-0-canary`;
}

/** `number` starts at 1. */
export function normalShardName(prefix: string, number: number): string {
  return `${prefix}-${number}-normal`;
}

const MAX_SHARD_NAME = 63;

/** The name of every shard must be a DNS label. */
export const MAX_PREFIX_LENGTH = MAX_SHARD_NAME - normalShardName("", MAX_NORMAL_SHARDS).length;

// Names of sharding: labels, annotations, computed selector keys and children, with KusionStack's spellings;
// and the hash of a namespace. Pure.
import { KUSIONSTACK_GROUP } from "./kind.ts";

/** The prefix of all keys of this file. */
export const SHARDING_PREFIX = `${KUSIONSTACK_GROUP}/`;

/** Computed key in a limit's selector: the hash of the namespace, as a decimal number. */
export const SHARD_HASH = `${SHARDING_PREFIX}shard-hash`;

/** Computed key in a limit's selector: the name of the namespace. */
export const NAMESPACE = `${SHARDING_PREFIX}namespace`;

/**
 * Computed key in the selectors of children only: the child to which the root's placement assigns the
 * namespace.
 */
export const SHARD = `${SHARDING_PREFIX}shard`;

/**
 * Label with which KusionStack marks what it controls; a value other than "true" on a namespace opts the
 * namespace out.
 */
export const CONTROL = `${SHARDING_PREFIX}control`;

/** Label on a child: the name of its root. */
export const AUTO_SHARDING_ROOT = `${SHARDING_PREFIX}auto-sharding-root`;

/** Annotation on a child: a hash of what the child was made from. */
export const AUTO_SHARDING_HASH = `${SHARDING_PREFIX}auto-sharding-hash`;

/** Annotation on a root: which shard owns which namespaces. Only the manager writes it. */
export const PLACEMENT = `${SHARDING_PREFIX}placement`;

/**
 * Label on a root's StatefulSet: its new versions are rolled out shard by shard. "" or "all", or names of
 * shards separated by "_".
 */
export const ROLLING = `${SHARDING_PREFIX}rolling`;

/**
 * Annotation on a root with such a StatefulSet: the revision that each pod has or is to get. Only the manager
 * writes it.
 */
export const ROLL_EXPECTED = `${SHARDING_PREFIX}roll-expected`;

/** Label that the StatefulSet controller gives to each of its pods: the pod's name. */
export const POD_NAME = "statefulset.kubernetes.io/pod-name";

/** The maximum number of normal shards of a root. */
export const MAX_NORMAL_SHARDS = 64;

/** The name of a root's canary shard. */
export function canaryShardName(prefix: string): string {
  return `${prefix}-0-canary`;
}

/** The name of a root's normal shard; `number` starts at 1. */
export function normalShardName(prefix: string, number: number): string {
  return `${prefix}-${number}-normal`;
}

const MAX_SHARD_NAME = 63;

/** The maximum length of a root's prefix, so that the name of every shard is a DNS label. */
export const MAX_PREFIX_LENGTH = MAX_SHARD_NAME - normalShardName("", MAX_NORMAL_SHARDS).length;

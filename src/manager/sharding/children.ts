// The children of a root: one ShardingConfig for each shard, with the names and selectors that KusionStack's
// controller mesh makes. The manager stores them for users to see. It compiles the family from what this file
// computes, and never from stored children. Pure. Invariants: the limits of the children contain each namespace exactly once, unless an entry of the root leaves it out.
import type { LabelSelector, LabelSelectorRequirement } from "../../api/label-selector.ts";
import { autoOf, type ShardingConfig, type ShardingRoot } from "../../api/sharding-config.ts";
import {
  AUTO_SHARDING_ROOT,
  canaryShardName,
  NAMESPACE,
  normalShardName,
  POD_NAME,
  SHARD,
  SHARD_HASH,
} from "../../api/sharding-keys.ts";
import { canaryTest } from "./canary.ts";
import { numbersUpTo } from "./membership.ts";
import { type Placement, placer, shardsByHash } from "./placement.ts";

/** The children of a valid config, the canary first; none unless it is a root. */
export function childrenOf(config: ShardingConfig, placement: Placement): ShardingConfig[] {
  const { root } = config.spec;
  if (root === undefined) return [];
  const { prefix, canary } = root;
  const { everyShardReplicas } = autoOf(root);
  const firstNormalOrdinal = placement.start + (canary?.replicas ?? 0);
  const child = (name: string, ordinal: number, count: number, terms: readonly LabelSelectorRequirement[]) =>
    childOf(config, root, { name, pods: podNames(root, ordinal, count), terms });
  const normals = numbersOf(placement).map((number) => {
    const name = normalShardName(prefix, number);
    const ordinal = firstNormalOrdinal + everyShardReplicas * (number - 1);
    return child(name, ordinal, everyShardReplicas, normalTerms(root, placement, number));
  });
  if (canary === undefined) return normals;
  const name = canaryShardName(prefix);
  return [child(name, placement.start, canary.replicas, canaryTerms(canary, name)), ...normals];
}

/** The numbers of the normal shards: those that the root should have, and larger ones that still own namespaces. */
function numbersOf({ shards, active }: Placement): number[] {
  return [...numbersUpTo(shards), ...active.filter((number) => number > shards)];
}

/** Gives the shard that owns a place. @param cluster absent at home */
export function shardPlacer(root: ShardingRoot, placement: Placement, cluster?: string): (place: string) => string {
  const [isCanary, numberOf] = [canaryTest(root.canary, placement.canaryNamespace), placer(placement, cluster)];
  const canary = canaryShardName(root.prefix);
  return (place) => (isCanary(place) ? canary : normalShardName(root.prefix, numberOf(place)));
}

export function homeShard({ prefix }: ShardingRoot, { active: [first = 1] }: Placement): string {
  return normalShardName(prefix, first);
}

interface ChildParts {
  readonly name: string;
  readonly pods: readonly string[];
  readonly terms: readonly LabelSelectorRequirement[];
}

function childOf({ apiVersion, kind, metadata, spec }: ShardingConfig, root: ShardingRoot, parts: ChildParts): ShardingConfig {
  const { controller, webhook } = spec;
  const { namespace, name = "", uid = "" } = metadata;
  const owner = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion,
    kind,
    metadata: {
      ...(namespace === undefined ? {} : { namespace }),
      name: parts.name,
      labels: { [AUTO_SHARDING_ROOT]: name },
      ownerReferences: [owner],
    },
    spec: {
      selector: { matchExpressions: [{ key: POD_NAME, operator: "In", values: parts.pods }] },
      controller,
      webhook,
      limits: root.resourceSelector.map((limit) => ({ ...limit, selector: withTerms(limit.selector, parts.terms) })),
    },
  };
}

function withTerms(selector: LabelSelector = {}, terms: readonly LabelSelectorRequirement[]): LabelSelector {
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...terms] };
}

function podNames({ targetStatefulSet }: ShardingRoot, first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${targetStatefulSet}-${first + index}`);
}

// One selector cannot say "in one list or in the other", nor a percentage.
function canaryTerms({ inNamespaces, inShardHash, percent }: NonNullable<ShardingRoot["canary"]>, name: string) {
  if (percent !== undefined || (inNamespaces !== undefined && inShardHash !== undefined)) return [placedOn(name)];
  return [...listed(NAMESPACE, "In", inNamespaces), ...listed(SHARD_HASH, "In", inShardHash)];
}

function normalTerms({ prefix, canary }: ShardingRoot, placement: Placement, number: number): LabelSelectorRequirement[] {
  if (placement.map !== undefined || canary?.percent !== undefined) return [placedOn(normalShardName(prefix, number))];
  const batch = shardsByHash(placement).flatMap((shard, hash) => (shard === number ? [String(hash)] : []));
  return [
    ...listed(NAMESPACE, "NotIn", canary?.inNamespaces),
    ...listed(SHARD_HASH, "NotIn", canary?.inShardHash),
    batch.length === 0 ? { key: SHARD_HASH, operator: "DoesNotExist" } : { key: SHARD_HASH, operator: "In", values: batch },
  ];
}

function placedOn(shard: string): LabelSelectorRequirement {
  return { key: SHARD, operator: "In", values: [shard] };
}

function listed(key: string, operator: "In" | "NotIn", values: readonly string[] | undefined): LabelSelectorRequirement[] {
  return values === undefined ? [] : [{ key, operator, values }];
}

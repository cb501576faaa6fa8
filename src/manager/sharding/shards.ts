// The shards of a family: the pods of each, and the namespaces and resources that it owns. Pure. Invariants:
// the children that users see are what is compiled; terms of computed keys test the namespace's name and what
// the manager computes from it, never a label.
import type { LabelSelector } from "../../api/label-selector.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { NAMESPACE, SHARD, SHARD_HASH } from "../../api/sharding-keys.ts";
import { formatTerms, type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";
import { placeHash } from "../../kube/place.ts";
import type { ResourceMatch } from "../../mesh/ownership/table.ts";
import { childrenOf, homeShard, shardPlacer } from "./children.ts";
import type { Placement } from "./placement.ts";

export interface Shard {
  /** Also the name of the subset. */
  readonly name: string;
  /** Selects its pods. A pod belongs to the first shard of the family that selects it. */
  readonly pods: LabelSelector;
  readonly rules: readonly ShardRule[];
}

/** One entry of a config's limits. */
export interface ShardRule extends SplitSelector {
  readonly resources: readonly ResourceMatch[];
  /** The entry's place, for messages. */
  readonly origin: string;
}

export interface FamilyShards {
  /** Of two shards that contain a namespace, the first owns it. */
  readonly shards: readonly Shard[];
  /** The shard to which a root's placement assigns a namespace. */
  readonly shardOf?: (namespace: string) => string;
  /** The same inside another cluster. */
  readonly shardIn?: (cluster: string) => (namespace: string) => string;
  /** The shard of a root that owns cluster-scoped objects. Otherwise the first shard that names the resource does. */
  readonly home?: string;
  /** Shards own buckets of cluster-scoped names as they own namespaces. Otherwise the home shard owns all. */
  readonly isByName?: boolean;
}

interface Configs {
  readonly root: ShardingConfig | undefined;
  readonly configs: readonly ShardingConfig[];
}

/** Undefined while the shards of a root are not placed. The configs must be valid. */
export function shardsOf({ root, configs }: Configs, placement: Placement | undefined): FamilyShards | undefined {
  return root === undefined ? shardsOfConfigs(configs) : placement && shardsOfRoot(root, placement);
}

/** The shards of a root. The config must be valid and have a root. */
export function shardsOfRoot(config: ShardingConfig, placement: Placement): FamilyShards {
  const { root } = config.spec;
  if (root === undefined) return { shards: [] };
  const shards = childrenOf(config, placement).map((child) => shardOfConfig(child, (at) => `spec.root.resourceSelector[${at}]`));
  return {
    shards,
    shardOf: shardPlacer(root, placement),
    shardIn: (cluster) => shardPlacer(root, placement, cluster),
    home: homeShard(root, placement),
    isByName: root.clusterScoped === "ByName",
  };
}

/** The shards of hand-written configs, which must be valid. */
export function shardsOfConfigs(configs: readonly ShardingConfig[]): FamilyShards {
  const shards = configs.map((config) => shardOfConfig(config, (at) => `${config.metadata.name}: spec.limits[${at}]`));
  return { shards: shards.sort((a, b) => compareNames(a.name, b.name)) };
}

/** Numbers in names count as numbers: `a-2` comes before `a-10`. */
export function compareNames(a: string, b: string): number {
  return collator.compare(a, b) || Number(a > b) - Number(a < b);
}

const collator = new Intl.Collator("en", { numeric: true });

function shardOfConfig({ metadata: { name = "" }, spec }: ShardingConfig, originOf: (index: number) => string): Shard {
  const rules = (spec.limits ?? []).map(({ relateResources, selector }, index): ShardRule => {
    return { resources: relateResources, ...splitSelector(selector), origin: originOf(index) };
  });
  return { name, pods: spec.selector ?? {}, rules };
}

/** The values of the computed keys for one namespace. */
interface ComputedKeys {
  readonly name: string;
  readonly hash: string;
  /** The shard to which the placement of a root assigns the namespace; "" in hand-written families. */
  readonly shard: string;
}

export type NamespaceTest = (keys: ComputedKeys) => boolean;

export function computedKeys(name: string, shard = ""): ComputedKeys {
  return { name, hash: String(placeHash(name)), shard };
}

interface SplitSelector {
  readonly contains: NamespaceTest;
  /** Equal texts mean equal tests. */
  readonly testText: string;
  /** The terms of the objects' labels. */
  readonly terms: readonly LabelTerm[];
}

/** Splits the selector of a limit into the test of the computed keys and the other terms. */
export function splitSelector(selector: LabelSelector = {}): SplitSelector {
  const terms = termsOfSelector(selector);
  const computed = terms.filter(({ key }) => READERS.has(key));
  const tests = computed.map(testOf);
  return {
    contains: (keys) => tests.every((test) => test(keys)),
    testText: formatTerms(computed),
    terms: terms.filter(({ key }) => !READERS.has(key)),
  };
}

const READERS: ReadonlyMap<string, (keys: ComputedKeys) => string> = new Map([
  [NAMESPACE, ({ name }) => name],
  [SHARD_HASH, ({ hash }) => hash],
  [SHARD, ({ shard }) => shard],
]);

function testOf({ key, operator, values }: LabelTerm): NamespaceTest {
  const read = READERS.get(key) ?? (() => "");
  const listed = new Set(values);
  switch (operator) {
    case "in":
      return (keys) => listed.has(read(keys));
    case "notin":
      return (keys) => !listed.has(read(keys));
    case "exists":
      return () => true;
    case "!":
      return () => false;
    default:
      return operator satisfies never;
  }
}

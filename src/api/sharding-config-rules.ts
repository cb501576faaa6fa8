// The rules over several fields of a ShardingConfig. Invariant: the cost is linear in the object, and an
// object above the bounds is refused first. The rules also run on objects with other problems (see rule.ts).
import { NAME_HASHES } from "../kube/place.ts";
import type { CelRule } from "./extensions.ts";
import { KUSIONSTACK_GROUP, recreateAdvice } from "./kind.ts";
import { MAX_EXPRESSIONS } from "./label-selector.ts";
import { termsOf } from "./limit-selector.ts";
import { MAX_NAME_LENGTH, SUBSET_SEPARATOR, shardNameSchema } from "./names.ts";
import { boundedResourcePairs, createResourceIndex, WILDCARD } from "./resource-match.ts";
import { type Finding, fieldAt, fieldsOf, isObject, itemsOf, type Path, specPath, stringsOf } from "./rule.ts";
import { MAX_NORMAL_SHARDS, normalShardName, SHARD } from "./sharding-keys.ts";

const ADVICE = recreateAdvice("ShardingConfig");

const NO_NAMESPACES = "selects no namespaces: set inNamespaces, inShardHash or percent";
const TOO_MANY_HASHED = `Legacy placement divides ${NAME_HASHES} hashes, so more than ${NAME_HASHES} shards cannot all own namespaces: use at most ${NAME_HASHES}, or spec.root.placement Balanced`;
const LONGEST_SUFFIX_LENGTH = SUBSET_SEPARATOR.length + normalShardName("", MAX_NORMAL_SHARDS).length;

const LABELLED_BY_NAME = "labelObjects needs each group and resource by name: name them, or remove labelObjects";

// The API server checks these itself, even without the webhook. Their messages are constants, so they cannot
// add a "did you mean".

export const selectorCel: CelRule = { rule: "self == oldSelf", message: `cannot be changed: ${ADVICE}` };

export const canaryCel: CelRule = {
  rule: "has(self.inNamespaces) || has(self.inShardHash) || has(self.percent)",
  message: NO_NAMESPACES,
};

const NEEDS_CLUSTERS =
  "Namespace needs clusterSelector or clustersFrom beside it: they say which other clusters the shards divide";

export const clustersByCel: CelRule = {
  rule: '!has(self.clustersBy) || self.clustersBy != "Namespace" || has(self.clusterSelector) || has(self.clustersFrom)',
  message: NEEDS_CLUSTERS,
  fieldPath: ".clustersBy",
};

const lockIn = (spec: string) => `${spec}.?controller.?leaderElectionName.orValue("")`;

export const specCel: readonly CelRule[] = [
  {
    rule: "has(self.root) || has(self.selector) && has(self.limits)",
    message: "without root, selector and limits are required",
  },
  {
    rule: `!has(self.root) || has(self.root.placement) && self.root.placement == "Balanced" || !has(self.root.auto) || !has(self.root.auto.shardingSize) || self.root.auto.shardingSize <= ${NAME_HASHES}`,
    message: TOO_MANY_HASHED,
    fieldPath: ".root",
  },
  {
    rule: `!has(self.root) || ${lockIn("self")}.size() + self.root.prefix.size() + ${LONGEST_SUFFIX_LENGTH} <= ${MAX_NAME_LENGTH}`,
    message: `the lock of a shard, NAME${SUBSET_SEPARATOR}SHARD, must not be longer than ${MAX_NAME_LENGTH} characters`,
    fieldPath: ".controller",
  },
  // Each of these changes would move the object to another family, and leave the pods of the former one
  // without an owner.
  { rule: "has(self.root) == has(oldSelf.root)", message: `root cannot be added or removed: ${ADVICE}` },
  { rule: "has(self.selector) == has(oldSelf.selector)", message: `selector cannot be added or removed: ${ADVICE}` },
  {
    // Running pods would keep the old name while new pods use the new one. Only a root may set the name
    // later: without root it names the family.
    rule: `${lockIn("oldSelf")} in [${lockIn("self")}, has(self.root) ? "" : ${lockIn("self")}]`,
    message: `the name of the operator's lock cannot be changed, and only a root may set it later: ${ADVICE}`,
  },
];

export const configCel: CelRule = {
  rule: `has(self.spec.root) || self.metadata.name != "default" && !self.metadata.name.contains("${SUBSET_SEPARATOR}") && !self.metadata.name.contains(".")`,
  message: `the name is the name of the shard: it must be a DNS label without "${SUBSET_SEPARATOR}", and not "default"`,
};

export function* specRules(spec: unknown): Iterable<Finding> {
  for (const list of LIMIT_LISTS) {
    const resources = limitsOf(spec, list).map(({ limit }) => fieldAt(limit, "relateResources"));
    yield* boundedResourcePairs(resources, list);
  }
  yield* rootOrLimits(spec);
  for (const list of LIMIT_LISTS) yield* uniqueResources(limitsOf(spec, list));
  yield* resourceNamesRule(spec);
  yield* canaryRule(spec);
  yield* clustersByRule(spec);
  yield* hashedShardsRule(spec);
  yield* rootLockLength(spec);
  if (fieldAt(spec, "root") !== undefined) yield* roomForChildren(spec);
}

export function* configRules(config: unknown): Iterable<Finding> {
  const spec = fieldAt(config, "spec");
  const isRoot = fieldAt(spec, "root") !== undefined;
  const isChild = rootNameOf(fieldAt(config, "metadata")) !== undefined;
  if (!isRoot) yield* shardName(config);
  if (!isRoot && !isChild) yield* familyName(spec);
  if (!isChild) yield* shardKeyRule(spec);
}

/** Undefined unless the object is a child. Takes any metadata. */
export function rootNameOf(metadata: unknown): string | undefined {
  const owner = itemsOf(fieldAt(metadata, "ownerReferences")).find(isOwningRoot);
  const name = fieldAt(owner, "name");
  return typeof name === "string" ? name : undefined;
}

function isOwningRoot(owner: unknown): boolean {
  const { apiVersion, kind, controller } = fieldsOf(owner);
  return controller === true && kind === "ShardingConfig" && String(apiVersion).startsWith(`${KUSIONSTACK_GROUP}/`);
}

const OWN_LIMITS = ["limits"] as const;
const ROOT_LIMITS = ["root", "resourceSelector"] as const;
const LIMIT_LISTS = [OWN_LIMITS, ROOT_LIMITS] as const;

interface Limit {
  readonly path: Path;
  readonly limit: unknown;
}

function limitsOf(spec: unknown, list: readonly string[]): Limit[] {
  return itemsOf(fieldAt(spec, ...list)).map((limit, index) => ({ path: [...list, index], limit }));
}

/** Beside root, `limits` has no effect. */
function effectiveLimitsOf(spec: unknown): Limit[] {
  return limitsOf(spec, fieldAt(spec, "root") === undefined ? OWN_LIMITS : ROOT_LIMITS);
}

function* rootOrLimits(spec: unknown): Iterable<Finding> {
  if (!isObject(spec)) return;
  const { root, selector, limits } = fieldsOf(spec);
  if (root !== undefined) return;
  if (selector === undefined) yield { path: ["selector"], message: "required without root: it selects the pods of the shard" };
  if (limits === undefined)
    yield { path: ["limits"], message: "required without root: they name the resources that the shards divide" };
}

function* uniqueResources(limits: readonly Limit[]): Iterable<Finding> {
  const earlier = createResourceIndex<Path>();
  for (const { path: limitPath, limit } of limits) {
    const path = [...limitPath, "relateResources"];
    const resources = itemsOf(fieldAt(limit, "relateResources"));
    const other = earlier.firstOverlap(resources);
    earlier.add(resources, path);
    if (other === undefined) continue;
    yield { path, message: `names a resource that ${specPath(other)} names too; name each resource in one entry only` };
  }
}

// The manager needs a policy and rights for each labelled resource, so it needs the name of each.
function* resourceNamesRule(spec: unknown): Iterable<Finding> {
  if (fieldAt(spec, "labelObjects") !== true) return;
  for (const { path, limit } of effectiveLimitsOf(spec)) {
    for (const [at, match] of itemsOf(fieldAt(limit, "relateResources")).entries()) {
      for (const field of ["apiGroups", "resources"]) {
        if (!stringsOf(fieldAt(match, field)).includes(WILDCARD)) continue;
        yield { path: [...path, "relateResources", at, field], value: WILDCARD, message: LABELLED_BY_NAME };
      }
    }
  }
}

function* canaryRule(spec: unknown): Iterable<Finding> {
  const canary = fieldAt(spec, "root", "canary");
  // With any other field there is nothing to add: either it selects namespaces, or the schema refuses it as
  // unknown.
  if (!isObject(canary) || Object.keys(canary).some((name) => name !== "replicas")) return;
  yield { path: ["root", "canary"], message: NO_NAMESPACES };
}

function* clustersByRule(spec: unknown): Iterable<Finding> {
  const { clustersBy, clusterSelector, clustersFrom } = fieldsOf(fieldAt(spec, "root"));
  if (clustersBy !== "Namespace" || clusterSelector !== undefined || clustersFrom !== undefined) return;
  yield { path: ["root", "clustersBy"], message: NEEDS_CLUSTERS };
}

function* hashedShardsRule(spec: unknown): Iterable<Finding> {
  const { placement, auto } = fieldsOf(fieldAt(spec, "root"));
  const size = fieldAt(auto, "shardingSize");
  if (placement === "Balanced" || typeof size !== "number" || size <= NAME_HASHES || size > MAX_NORMAL_SHARDS) return;
  yield { path: ["root", "auto", "shardingSize"], value: size, message: TOO_MANY_HASHED };
}

const LOCK_PATH = ["controller", "leaderElectionName"] as const;

function* rootLockLength(spec: unknown): Iterable<Finding> {
  const prefix = fieldAt(spec, "root", "prefix");
  const lock = fieldAt(spec, ...LOCK_PATH);
  if (typeof prefix !== "string" || typeof lock !== "string") return;
  const room = MAX_NAME_LENGTH - prefix.length - LONGEST_SUFFIX_LENGTH;
  if (lock.length <= room) return;
  const message = `too long: the lock of each shard is NAME${SUBSET_SEPARATOR}SHARD, with at most ${MAX_NAME_LENGTH} characters; use at most ${room} here`;
  yield { path: LOCK_PATH, value: lock, message };
}

// A child adds up to three terms to the selector of each limit.
function* roomForChildren(spec: unknown): Iterable<Finding> {
  for (const { path, limit } of limitsOf(spec, ["root", "resourceSelector"])) {
    yield* shortSelector(limit, [...path, "selector"], MAX_EXPRESSIONS - 3);
  }
}

function* shortSelector(owner: unknown, path: Path, maxTerms: number): Iterable<Finding> {
  const count = itemsOf(fieldAt(owner, "selector", "matchExpressions")).length;
  if (count <= maxTerms) return;
  const message = `must have at most ${maxTerms} items in a root: each shard adds its own`;
  yield { path: [...path, "matchExpressions"], message };
}

function* shardName(config: unknown): Iterable<Finding> {
  const name = fieldAt(config, "metadata", "name");
  if (typeof name !== "string" || name.length > 63) return; // the schema refuses a longer name
  for (const { message } of shardNameSchema.safeParse(name).error?.issues ?? []) {
    yield { path: ["metadata", "name"], value: name, message };
  }
}

const MAX_LABEL_VALUE_LENGTH = 63;

/** The lock of hand-written configs names their family. */
function* familyName(spec: unknown): Iterable<Finding> {
  const lock = fieldAt(spec, ...LOCK_PATH);
  if (typeof lock !== "string" || lock.length <= MAX_LABEL_VALUE_LENGTH) return;
  const message = `must have at most ${MAX_LABEL_VALUE_LENGTH} characters without root: it names the family, in a label of its pods`;
  yield { path: ["spec", ...LOCK_PATH], value: lock, message };
}

function* shardKeyRule(spec: unknown): Iterable<Finding> {
  for (const { path, limit } of effectiveLimitsOf(spec)) {
    for (const { key, keyPath } of termsOf(fieldAt(limit, "selector"))) {
      if (key !== SHARD) continue;
      const message = "is reserved for the children of a root: the placement of the root decides it";
      yield { path: ["spec", ...path, "selector", ...keyPath], value: key, message };
    }
  }
}

// The source kind ShardingConfig: turns the configs of a namespace into families, and each family into one
// App. Invariant: a root's app follows from its spec and its stored placement alone; children are not read.
import { annotationValue, stripsManagedFields } from "../../api/annotations.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { NO_CALLER_POLICY } from "../../route/snapshot.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import type { App, AppSpec, AppWords, Source } from "../apps/app.ts";
import { describeFamily } from "./describe-family.ts";
import { type Family, familiesOf } from "./family.ts";
import { familyNameOf } from "./family-name.ts";
import { familyPods } from "./family-pods.ts";
import { familyProblems } from "./family-problems.ts";
import { labelledResources, uniqueResources } from "./labelled-resources.ts";
import { routeOfShards } from "./shard-rules.ts";
import { judgeEdit } from "./sharding-edit.ts";
import { type FamilyShards, shardsOfConfigs, shardsOfRoot } from "./shards.ts";
import { placementInputs, storedPlacement } from "./stored-placement.ts";

const WORDS: AppWords = {
  kind: SHARDING_CONFIGS.kind,
  plural: "families of ShardingConfigs",
  rules: "the ShardingConfigs of family",
  lockField: "spec.controller.leaderElectionName",
  agentsField: "",
  pausedField: "spec.paused",
  maxMovingField: "",
};

export function createShardingSource(): Source<ShardingConfig> {
  return {
    resource: SHARDING_CONFIGS,
    words: WORDS,
    controllerName: "sharding-config",
    inputsOf: (config) => [placementInputs(config), annotationValue(config.metadata.annotations, "strip-managed-fields")],
    appNameOf: familyNameOf,
    labelledBy: labelledResources,
    appsOf: (configs) => familiesOf(configs).map(appOf),
    judgeEdit,
  };
}

function appOf(family: Family): App {
  const { name, root, configs, leaving } = family;
  const [head] = configs;
  if (head === undefined) throw new TypeError("a family without a config");
  const problems = familyProblems(family);
  const shards = problems.length === 0 ? shardsOf(family) : undefined;
  return {
    words: WORDS,
    ref: { kind: SHARDING_CONFIGS.kind, namespace: head.metadata.namespace ?? "", name },
    object: head,
    objects: configs,
    isEnding: head.metadata.deletionTimestamp !== undefined || root?.spec?.root?.disable === true,
    leaving,
    pods: familyPods(family, shards?.shards ?? []),
    spec: problems.length === 0 ? specOf(family, shards) : undefined,
    problems,
  };
}

/** Undefined while the shards of a root are not placed. The configs must be valid. */
function shardsOf({ root, configs }: Family): FamilyShards | undefined {
  if (root === undefined) return shardsOfConfigs(configs);
  const placement = storedPlacement(root);
  return placement && shardsOfRoot(root, placement);
}

function specOf(family: Family, shards: FamilyShards | undefined): AppSpec {
  const { name, root, configs } = family;
  const [head] = configs;
  const names = shards?.shards.map((shard) => shard.name) ?? [];
  const described = {
    name,
    shard: root === undefined ? head?.metadata.name : undefined,
    children: root && shards && names,
    normal: root === undefined ? names : names.slice(root.spec.root?.canary === undefined ? 0 : 1),
  };
  return {
    subsets: [DEFAULT_SUBSET, ...names],
    lockName: head?.spec.controller?.leaderElectionName ?? "",
    callers: { ...NO_CALLER_POLICY, stripManagedFields: configs.some(({ metadata }) => stripsManagedFields(metadata)) },
    ...(shards === undefined && root !== undefined ? { waitsFor: waitText(root) } : {}),
    guard: configs.every(({ spec }) => spec.guard === "Warn") ? "Warn" : undefined,
    webhook: head?.spec.webhook,
    isPaused: configs.some(({ spec }) => spec.paused === true),
    retainsLosses: configs.some(({ spec }) => spec.onLoss !== "InPlace"),
    labelled: uniqueResources(configs.flatMap(labelledResources)),
    route: () => routeOfShards(shards ?? { shards: [] }),
    describe: (counts) => describeFamily(described, counts),
  };
}

function waitText({ spec: { root } }: ShardingConfig): string {
  return `the namespaces are not placed yet: StatefulSet ${root?.targetStatefulSet} has to exist`;
}

// The source kind ShardingConfig: turns the configs of a namespace into families, and each family into one
// App. Invariant: a root's app follows from its spec and its stored placement alone; children are not read.
import { annotationValue, stripsManagedFields } from "../../api/annotations.ts";
import { WILDCARD } from "../../api/resource-match.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import { fieldAt, itemsOf, stringsOf } from "../../api/rule.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { AUTO_SHARDING_ROOT } from "../../api/sharding-keys.ts";
import { resourceName } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { GroupResource } from "../../kube/types.ts";
import { NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { type App, type AppSpec, type AppWords, frozenIn, type Source } from "../apps/app.ts";
import { activeSubsets, clusterRulesIn, shardNames } from "./cluster-owners.ts";
import { type Family, familiesOf, familyNameOf } from "./family.ts";
import { createFamilyMemory } from "./family-memory.ts";
import { familyPods } from "./family-pods.ts";
import { describeFamily } from "./family-status.ts";
import { joiningText } from "./joining.ts";
import { routeOfShards } from "./shard-rules.ts";
import { familyProblems, judgeEdit } from "./sharding-edit.ts";
import { type FamilyShards, shardsOf } from "./shards.ts";
import { placementInputs, storedPlacement } from "./stored-placement.ts";

const WORDS: AppWords = {
  kind: SHARDING_CONFIGS.kind,
  plural: "families of ShardingConfigs",
  rules: "the ShardingConfigs of family",
  lockField: "spec.controller.leaderElectionName",
  agentsField: "",
  pausedField: "spec.paused",
  maxMovingField: "spec.root.maxMovingPercent",
};

export function createShardingSource(check = familyProblems): Source<ShardingConfig> {
  const known = createFamilyMemory((family) => checkedFamily(family, check));
  return {
    resource: SHARDING_CONFIGS,
    words: WORDS,
    controllerName: "sharding-config",
    partsSelector: `!${AUTO_SHARDING_ROOT}`, // children are views
    readsNamespaceLabels: false,
    inputsOf: (config) => [
      placementInputs(config as ShardingConfig),
      annotationValue(config.metadata.annotations, "strip-managed-fields"),
      annotationValue(config.metadata.annotations, "confirm-moves"),
    ],
    statusInputsOf: (config) => joiningText(config as ShardingConfig),
    appNameOf: familyNameOf,
    labelledBy: labelledResources,
    appsOf: (configs) => familiesOf(configs).map((family) => appOf(family, known.of(family))),
    onUpdate: known.keep,
    judgeEdit,
  };
}

function appOf(family: Family, checked: CheckedFamily): App {
  const { name, root, configs, leaving } = family;
  const [head] = configs;
  if (head === undefined) throw new TypeError("a family without a config");
  return {
    words: WORDS,
    ref: { kind: SHARDING_CONFIGS.kind, namespace: head.metadata.namespace ?? "", name },
    object: head,
    objects: configs,
    isEnding: head.metadata.deletionTimestamp !== undefined || root?.spec?.root?.disable === true,
    leaving,
    ...checked,
  };
}

type CheckedFamily = Pick<App, "pods" | "spec" | "problems">;

function checkedFamily(family: Family, check: typeof familyProblems): CheckedFamily {
  const problems = check(family);
  const shards = problems.length === 0 ? shardsOf(family, family.root && storedPlacement(family.root)) : undefined;
  return {
    pods: familyPods(family, shards?.shards ?? []),
    spec: problems.length === 0 ? specOf(family, shards) : undefined,
    problems,
  };
}

function specOf(family: Family, shards: FamilyShards | undefined): AppSpec {
  const { name, root, configs } = family;
  const [head] = configs;
  const names = shardNames(shards);
  const placed = { family: shards, placement: root && storedPlacement(root) };
  const described = {
    name,
    shard: root === undefined ? head?.metadata.name : undefined,
    children: root && shards && names,
    normal: root === undefined ? names : names.slice(root.spec.root?.canary === undefined ? 0 : 1),
    isByHash: root !== undefined && shards !== undefined && root.spec.root?.placement !== "Balanced",
    shardingSize: root?.spec.root?.auto?.shardingSize,
    joiningText: root && joiningText(root),
    dividesInside: root?.spec.root?.clustersBy === "Namespace",
  };
  return {
    subsets: [DEFAULT_SUBSET, ...names],
    lockName: head?.spec.controller?.leaderElectionName ?? "",
    callers: { ...NO_CALLER_POLICY, stripManagedFields: configs.some(({ metadata }) => stripsManagedFields(metadata)) },
    waitsFor: shards === undefined && root !== undefined ? notPlacedText(root) : undefined,
    guard: configs.every(({ spec }) => spec.guard === "Warn") ? "Warn" : undefined,
    frozen: frozenIn(...configs.map(({ spec }) => spec.frozen)),
    webhook: head?.spec.webhook,
    isPaused: configs.some(({ spec }) => spec.paused === true),
    maxMovingPercent: root && maxMovingOf(root),
    keptSubsets: root && activeSubsets(root.spec.root, placed),
    retainsLosses: configs.some(({ spec }) => spec.onLoss !== "InPlace"),
    labelled: uniqueResources(configs.flatMap(labelledResources)),
    ...(root && clusterRulesIn(root, placed)),
    route: () => routeOfShards(shards ?? { shards: [] }),
    describe: (counts) => describeFamily(described, counts),
  };
}

function maxMovingOf({ spec, metadata: { annotations, generation } }: ShardingConfig): number | undefined {
  const isConfirmed = annotationValue(annotations, "confirm-moves") === String(generation);
  return isConfirmed ? undefined : spec.root?.maxMovingPercent;
}

function notPlacedText({ spec: { root } }: ShardingConfig): string {
  return `the namespaces are not placed yet: StatefulSet ${root?.targetStatefulSet} has to exist`;
}

/** The resources that an object of any shape wants to be labelled: `namespaces` and those that it names. */
export function labelledResources(config: unknown): readonly GroupResource[] {
  const spec = fieldAt(config, "spec");
  if (fieldAt(spec, "labelObjects") !== true) return [];
  const root = fieldAt(spec, "root");
  const limits = itemsOf(root === undefined ? fieldAt(spec, "limits") : fieldAt(root, "resourceSelector"));
  const named = limits
    .flatMap((limit) => itemsOf(fieldAt(limit, "relateResources")))
    .flatMap((match) =>
      stringsOf(fieldAt(match, "apiGroups")).flatMap((group) =>
        stringsOf(fieldAt(match, "resources")).map((resource) => ({ group, resource })),
      ),
    );
  const { group, resource } = NAMESPACES;
  return uniqueResources([{ group, resource }, ...named]).filter((of) => of.group !== WILDCARD && of.resource !== WILDCARD);
}

export function uniqueResources(resources: readonly GroupResource[]): readonly GroupResource[] {
  return [...new Map(resources.map((of) => [resourceName(of), of])).values()];
}

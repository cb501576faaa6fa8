// Why a family is refused, and the answer of admission to a created or changed ShardingConfig. Pure.
// Invariants: a child may only become what its root says. An edit that breaks what the configs of a family must
// have in common only gets a warning, because users change the configs one after the other.
import { configKeyWarnings } from "../../api/kusionstack-keys.ts";
import type { Problem } from "../../api/problems.ts";
import { formatProblem } from "../../api/problems.ts";
import { fieldAt } from "../../api/rule.ts";
import { type ShardingConfig, type ShardingConfigSpec, validateShardingConfig } from "../../api/sharding-config.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import { POD_NAME } from "../../api/sharding-keys.ts";
import { remember } from "../../base/remember.ts";
import { termsOfSelector } from "../../kube/label-selector.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import type { EditVerdict, Surroundings } from "../apps/app.ts";
import { checkEdit, overlapWarnings } from "../apps/check-edit.ts";
import { childrenOf } from "./children.ts";
import { emptyShardsWarning } from "./empty-shards.ts";
import { type Family, familiesOf } from "./family.ts";
import { insideWarnings, podWarnings, removalWarnings, rerouteOf } from "./family-moves.ts";
import { coveringSelector } from "./family-pods.ts";
import { objectLimitProblems } from "./shard-rules.ts";
import { shardsOfConfigs } from "./shards.ts";
import { storedPlacement } from "./stored-placement.ts";

/** @param before undefined at creation */
export function judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict {
  const checked = checkEdit(before, after, validateShardingConfig, childProblems(after, surroundings));
  if (!("value" in checked)) return checked;
  const config = checked.value;
  if (config.metadata.deletionTimestamp !== undefined || rootNameOf(config.metadata) !== undefined) return ALLOWED;
  const family = familyWith(config, surroundings);
  const previous = checked.previous && familyWith(checked.previous, surroundings);
  const added = (family?.problems ?? []).filter((problem) => previous?.problems.includes(problem) !== true);
  if (added.length > 0) return { problems: added.map((message) => ({ path: "", message })), warnings: [] };
  const { selector } = config.spec;
  const warnings = [
    ...namedPodsWarnings(config),
    ...podWarnings(checked.previous, config),
    ...(family === undefined ? [] : memberProblems(family)).map(
      (problem) => `the family is refused until this is corrected: ${problem}`,
    ),
    ...(selector === undefined ? [] : overlapWarnings("ShardingConfig", "spec.selector", selector, otherKinds(surroundings))),
    ...configKeyWarnings(config.metadata),
    ...rootWarnings(config.spec, checked.previous?.spec),
  ];
  const isSame = isDeepEqual(checked.previous?.spec, config.spec);
  if (isSame || !isValid(previous) || !isValid(family)) return { problems: [], warnings };
  const reroute = config.spec.paused === true ? undefined : rerouteOf(previous, family);
  const moves = [...removalWarnings(previous, family), ...insideWarnings(previous, family)];
  return { problems: [], warnings: [...warnings, ...moves], ...(reroute === undefined ? {} : { reroute }) };
}

function isValid(family: Family | undefined): family is Family {
  return family !== undefined && familyProblems(family).length === 0;
}

// KusionStack's own sample has such a selector.
function namedPodsWarnings({ spec: { root, selector = {} } }: ShardingConfig): string[] {
  if (root === undefined || !termsOfSelector(selector).some(({ key }) => key === POD_NAME)) return [];
  const set = `StatefulSet ${root.targetStatefulSet}`;
  return [
    `spec.selector: a root's selector leaves out no pod: all pods of ${set} belong to the family and get the proxy, not only the named ones`,
  ];
}

const ALLOWED: EditVerdict = { problems: [], warnings: [] };

function rootWarnings({ root, limits }: ShardingConfigSpec, before: ShardingConfigSpec | undefined): string[] {
  if (root === undefined) return [];
  const ignored = "spec.limits has no effect beside root: the shards divide the resources of spec.root.resourceSelector";
  const empty = emptyShardsWarning(root, before?.root);
  return [...(limits === undefined ? [] : [ignored]), ...(empty === undefined ? [] : [empty])];
}

/** Judges the content of a child and not its writer, because the manager writes children too. */
function childProblems(after: unknown, { own }: Surroundings): Problem[] {
  const metadata = fieldAt(after, "metadata");
  const rootName = rootNameOf(metadata);
  const root = own?.object as ShardingConfig | undefined;
  const placement = root && storedPlacement(root);
  // A replica that does not know the root yet cannot judge.
  if (rootName === undefined || root === undefined || placement === undefined) return [];
  const name = fieldAt(metadata, "name");
  const child = childrenOf(root, placement).find((each) => each.metadata.name === name);
  if (child === undefined || isDeepEqual(fieldAt(after, "spec"), child.spec)) return [];
  return [{ path: "spec", message: `is made from ShardingConfig ${rootName}, and would be repaired: edit that one` }];
}

function familyWith(config: ShardingConfig, { own, others }: Surroundings): Family | undefined {
  const around = [...(own === undefined ? [] : [own]), ...others].filter(({ ref }) => ref.kind === config.kind);
  const known = around.flatMap(({ objects }) => objects as readonly ShardingConfig[]);
  const rest = known.filter(({ metadata }) => metadata.name !== config.metadata.name);
  const isIn = ({ configs }: Family) => configs.includes(config);
  return familiesOf([...rest, config]).find(isIn);
}

// Families of one namespace often select by one key, so only apps of other kinds count.
function otherKinds({ others }: Surroundings): Surroundings["others"] {
  return others.filter(({ ref }) => ref.kind !== "ShardingConfig");
}

/** The problems of each config, between families, and between the configs of the family. */
export function familyProblems(family: Family): string[] {
  return [...family.problems, ...configProblems(family), ...memberProblems(family)];
}

/** An answer of admission checks each config of a family several times. */
const checkedOnce = remember((config: ShardingConfig) => validateShardingConfig(config));

function configProblems({ configs }: Family): string[] {
  return configs.flatMap((config) => {
    const checked = checkedOnce(config);
    const prefix = configs.length === 1 ? "" : `${config.metadata.name}: `;
    return checked.ok ? [] : checked.problems.map((problem) => prefix + formatProblem(problem));
  });
}

/** What hand-written configs must have in common and do not; none while one of them is invalid. */
function memberProblems(family: Family): string[] {
  const { root, configs } = family;
  if (root !== undefined || configProblems(family).length > 0) return [];
  return [...coverProblems(configs), ...webhookProblems(configs), ...objectLimitProblems(shardsOfConfigs(configs).shards)];
}

// One operator serves all shards, and pods of one shard forward reviews to pods of another.
function webhookProblems([first, ...others]: readonly ShardingConfig[]): string[] {
  const different = others.find(({ spec }) => !isDeepEqual(spec.webhook, first?.spec.webhook));
  if (different === undefined) return [];
  return [
    `spec.webhook: ${first?.metadata.name} and ${different.metadata.name} must have the same, since one operator serves both`,
  ];
}

function coverProblems(configs: readonly ShardingConfig[]): string[] {
  if (coveringSelector(configs.flatMap(({ spec }) => spec.selector ?? [])) !== undefined) return [];
  const names = configs.map(({ metadata }) => metadata.name).join(", ");
  return [
    `spec.selector: ${names} must all restrict one key of the pods' labels to listed values, for example app or statefulset.kubernetes.io/pod-name: otherwise the webhook would be called for every pod of the namespace`,
  ];
}

// Groups the ShardingConfigs of one namespace into families. Pure; never throws, even for refused specs.
// Invariants: every config that is not a child is in exactly one family; a child is a view of its root and
// decides nothing. A conflict between two families is a problem of both, and names both.

import { MAX_FROZEN } from "../../api/operator-fields.ts";
import { fieldAt, fieldsOf } from "../../api/rule.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import { nameList } from "../../base/name-list.ts";
import type { KubeObject } from "../../kube/types.ts";
import { compareNames } from "./shards.ts";

export interface Family {
  /** The name of the root, of the lock, or of the only config if it names no lock. */
  readonly name: string;
  readonly root: ShardingConfig | undefined;
  /** In the order of their names: the live ones, or all of them if all are being deleted. */
  readonly configs: readonly ShardingConfig[];
  /** Configs that are being deleted while others of the family live. */
  readonly leaving: readonly ShardingConfig[];
  readonly problems: readonly string[];
}

/** More problems, or names in one of them, do not help a user. */
const MAX_PROBLEMS = 10;
const MAX_NAMES = 3;
/** The number of subsets that a status has room for, besides the default one. */
const MAX_SHARDS = MAX_NORMAL_SHARDS + 1;

/** The families, in the order of their names. */
export function familiesOf(configs: readonly ShardingConfig[]): Family[] {
  const input = configs.filter(({ metadata }) => rootNameOf(metadata) === undefined);
  const families = [...Map.groupBy(input, familyKeyOf).values()].map(familyOf);
  const problems = new Map(families.map((family) => [family, [...family.problems]]));
  for (const [a, b, text] of conflictsOf(families)) {
    for (const family of new Set([a, b])) problems.get(family)?.push(text);
  }
  return families
    .map((family) => ({ ...family, problems: (problems.get(family) ?? []).slice(0, MAX_PROBLEMS) }))
    .sort((a, b) => compareNames(a.name, b.name));
}

function familyOf(members: readonly ShardingConfig[]): Family {
  const sorted = [...members].sort((a, b) => compareNames(nameOf(a), nameOf(b)));
  const live = sorted.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const configs = live.length === 0 ? sorted : live;
  const [first] = configs;
  const root = first?.spec?.root === undefined ? undefined : first;
  const own = first === undefined ? "" : nameOf(first);
  const name = root === undefined ? lockOf(first) || own : own;
  return {
    name,
    root,
    configs,
    leaving: sorted.filter((config) => !configs.includes(config)),
    problems: [
      ...(configs.length <= MAX_SHARDS ? [] : [tooManyText(configs.length)]),
      ...(frozenNames(configs).size <= MAX_FROZEN ? [] : [TOO_MANY_FROZEN]),
    ],
  };
}

/** Without the number, so that a thaw which leaves too many adds no problem. */
const TOO_MANY_FROZEN = `the configs of this family freeze more than ${MAX_FROZEN} namespaces together`;

function frozenNames(configs: readonly ShardingConfig[]): ReadonlySet<string> {
  return new Set(configs.flatMap((config) => Object.keys(fieldsOf(fieldAt(config, "spec", "frozen")))));
}

function familyKeyOf(config: ShardingConfig): string {
  const lock = lockOf(config);
  return config.spec?.root === undefined && lock !== "" ? `lock ${lock}` : `config ${nameOf(config)}`;
}

type Conflict = readonly [a: Family, b: Family, text: string];

function* conflictsOf(families: readonly Family[]): Iterable<Conflict> {
  const roots = families.filter(({ root }) => root !== undefined);
  yield* sharing(families, ({ name }) => name, "are two families with one name");
  yield* sharing(roots, ({ root }) => root?.spec.root?.targetStatefulSet, "divide one StatefulSet");
  yield* sharing(roots, ({ root }) => root?.spec.root?.prefix, "name their shards alike");
  const byLock = new Map(roots.map((family) => [lockOf(family.root), family]));
  const byPrefix = new Map(roots.map((family) => [family.root?.spec.root?.prefix, family]));
  for (const family of families) {
    const lock = lockOf(family.configs[0]);
    const sameLock = family.root === undefined && lock !== "" ? byLock.get(lock) : undefined;
    if (sameLock !== undefined) {
      const text = `${titleOf(sameLock)} and ${titleOf(family)} name one lock: the shards of a root cannot be extended by hand`;
      yield [sameLock, family, text];
    }
    for (const name of family.configs.map(nameOf)) {
      const owner = byPrefix.get(prefixOf(name));
      if (owner !== undefined) yield [owner, family, `${JSON.stringify(name)} is the name of a child of ${titleOf(owner)}`];
    }
  }
}

function* sharing(families: readonly Family[], keyOf: (family: Family) => string | undefined, what: string): Iterable<Conflict> {
  for (const [key, [first, ...more]] of Map.groupBy(families, keyOf)) {
    if (first === undefined) continue;
    for (const other of more) yield [first, other, `${titleOf(first)} and ${titleOf(other)} ${what}, ${JSON.stringify(key)}`];
  }
}

/** The prefix of a root that may make a child of this name. */
function prefixOf(name: string): string | undefined {
  const [, prefix, number = "1"] = /^(.*)-(?:0-canary|([1-9]\d?)-normal)$/.exec(name) ?? [];
  return Number(number) <= MAX_NORMAL_SHARDS ? prefix : undefined;
}

function tooManyText(count: number): string {
  return `${count} ShardingConfigs name this lock, and a family has at most ${MAX_SHARDS} shards`;
}

function titleOf({ configs }: Family): string {
  const names = configs.map((config) => JSON.stringify(nameOf(config)));
  return nameList(names, MAX_NAMES);
}

function nameOf({ metadata }: ShardingConfig): string {
  return metadata.name ?? "";
}

function lockOf(config: ShardingConfig | undefined): string {
  return config?.spec?.controller?.leaderElectionName ?? "";
}

/** The name of the family of an object of any shape, see `Family`. A child is in its root's family. */
export function familyNameOf(config: KubeObject): string {
  const root = rootNameOf(config.metadata);
  if (root !== undefined) return root;
  const lock = fieldAt(config, "spec", "controller", "leaderElectionName");
  const isAlone = fieldAt(config, "spec", "root") !== undefined || typeof lock !== "string" || lock === "";
  return isAlone ? (config.metadata.name ?? "") : lock;
}

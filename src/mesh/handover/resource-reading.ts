// Reads from a table how it treats resources that move as a whole: those that are partitioned by label or
// shared (under a `sharded` rule, all that it does not name). Pure. A key has one group and one name, and
// each may be the wildcard, so a key is a set that may overlap other keys. Only this file compares keys:
//
//                       covers(a, b): all of b is in a     meets(a, b): some resource is in both
//   a = b               yes                                yes
//   a wider than b      yes                                yes
//   b wider than a      no                                 yes
//   a "g/*", b "*/r"    no                                 yes
//   else                no                                 no

import { remember } from "../../base/remember.ts";
import type { GroupResource } from "../../kube/types.ts";
import { type RouteTable, resourcesIn } from "../ownership/table.ts";

interface ResourceReading {
  /**
   * Whether fences stop all subsets: for all, a part or none of the key. A fence because of `unreported` does
   * not stop shared resources. Callers must treat "part" as the unsafe case.
   */
  readonly stopped: "all" | "part" | "none";
  /** All of the key is shared, and no rule names any of it. What a `sharded` rule names has fences of namespaces. */
  readonly isShared: boolean;
  /** With equal texts, every object of the key has the same owners under both tables. */
  readonly division: string;
}

export function covers(a: GroupResource, b: GroupResource): boolean {
  return (a.group === "*" || a.group === b.group) && (a.resource === "*" || a.resource === b.resource);
}

export function meets(a: GroupResource, b: GroupResource): boolean {
  return share(a.group, b.group) && share(a.resource, b.resource);
}

function share(a: string, b: string): boolean {
  return a === b || a === "*" || b === "*";
}

/** A different text for each key, since neither groups nor names contain a slash. */
export function textOf({ group, resource }: GroupResource): string {
  return `${group}/${resource}`;
}

type ResourceRules = ReturnType<typeof resourceRulesOf>;

// Read once for each table, since a plan asks for hundreds of keys.
const resourceRulesOf = remember(({ rules, sharedResources }: RouteTable) => {
  const sharded = rules.find(({ kind }) => kind === "sharded");
  return {
    objects: rules.flatMap((rule) => (rule.kind === "objects" ? [{ rule, keys: resourcesIn(rule.resources) }] : [])),
    fences: rules.flatMap((rule) =>
      rule.kind === "fence" ? resourcesIn(rule.resources).map((fence) => ({ fence, moves: rule.because === "moves" })) : [],
    ),
    sharded: sharded && resourcesIn(sharded.resources),
    shared: resourcesIn(sharedResources),
  };
});

/** @param isKnown false for a namespace that the other table does not have, where it has no owner */
export function readingOf(table: RouteTable, key: GroupResource, isKnown: (namespace: string) => boolean): ResourceReading {
  const { rules, classOf, classes } = table;
  const read = resourceRulesOf(table);
  const sharing = sharingOf(read, key);
  const objects = read.objects.flatMap(({ rule, keys }) => {
    const named = meeting(keys, key);
    return named.length > 0 ? [{ rule, named }] : [];
  });
  // A resource that is partitioned by label is not shared.
  const isDivided = objects.some(({ named }) => named.includes(ALL));
  const shared = {
    inPart: sharing.parts.length > 0 && !isDivided,
    whole: sharing.isWhole && objects.length === 0,
  };
  // Rules on namespaces that name a shared resource exclude namespaces from sharing, but not in a sharded
  // family. Other resources have fences of namespaces.
  const taken =
    !shared.inPart || read.sharded !== undefined
      ? []
      : rules.flatMap((rule, index) => {
          const named = rule.kind === "subset" ? meeting(resourcesIn(rule.resources), key) : [];
          if (rule.kind !== "subset" || named.length === 0) return [];
          const namespaces = [...classOf].flatMap(([name, at]) => (classes[at]?.includes(index) && isKnown(name) ? [name] : []));
          return [[rule.subset, named, namespaces.sort()]];
        });
  const labels = objects.map(({ rule: { subset, term }, named }) => [subset, term.key, term.operator, term.values, named]);
  return {
    stopped: stoppedOf(read, key, shared),
    isShared: shared.whole && taken.length === 0,
    division: JSON.stringify([sharing.hasShards, labels, shared.inPart ? sharing.parts : [], taken]),
  };
}

const ALL = "all";

/** The shared part of a key. */
interface Sharing {
  readonly parts: readonly string[];
  /** Everything but what a `sharded` rule names is shared. */
  readonly isWhole: boolean;
  /** A `sharded` rule names some of the key, so shards own its cluster-scoped objects. */
  readonly hasShards: boolean;
}

function sharingOf({ sharded, shared }: ResourceRules, key: GroupResource): Sharing {
  if (sharded === undefined) {
    const parts = meeting(shared, key);
    return { parts, isWhole: parts.includes(ALL), hasShards: false };
  }
  const named = meeting(sharded, key);
  if (named.includes(ALL)) return { parts: [], isWhole: false, hasShards: true };
  return { parts: named.length === 0 ? [ALL] : ["without", ...named], isWhole: true, hasShards: named.length > 0 };
}

// The parts of `key` that `keys` name, in an order that does not depend on theirs.
function meeting(keys: readonly GroupResource[], key: GroupResource): string[] {
  const found = keys.filter((each) => meets(each, key));
  return found.some((each) => covers(each, key)) ? [ALL] : [...new Set(found.map(textOf))].sort();
}

function stoppedOf(
  { fences }: ResourceRules,
  key: GroupResource,
  shared: { readonly inPart: boolean; readonly whole: boolean },
): ResourceReading["stopped"] {
  if (fences.some(({ fence, moves }) => covers(fence, key) && (moves || !shared.inPart))) return "all";
  return fences.some(({ fence, moves }) => meets(fence, key) && (moves || !shared.whole)) ? "part" : "none";
}

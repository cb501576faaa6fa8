// Reads from a table how it treats resources that move as a whole: those that are partitioned by label or
// shared. Under a `sharded` rule a resource that the rule does not name is shared. Pure. A key is one group
// and one name, and each may be the wildcard, so it is also a set, which may overlap other keys. Only this
// file compares keys:
//
//                       covers(a, b): all of b is in a     meets(a, b): some resource is in both
//   a = b               yes                                yes
//   a wider than b      yes                                yes
//   b wider than a      no                                 yes
//   a "g/*", b "*/r"    no                                 yes
//   else                no                                 no
//
// The fields of a reading ("part": only partly true, so the callers assume the unsafe case):
//
//   stopped  all:  the table permits nobody to act on any of the key: a fence with the reason `moves` covers it, or a fence
//                  with the reason `unreported` does and none of the key is shared: that fence does not cover shared resources
//            none: no fence covers any of the key
//   isShared       all resources of the key are shared, and no rule names any of them. Resources that a `sharded` rule names do not count: they
//                  have fences of namespaces
//   division       if two tables have equal divisions, every object of the key has the same owners under both
import type { GroupResource } from "../../kube/types.ts";
import { type RouteRule, type RouteTable, resourcesIn } from "../../route/table.ts";
import { remember } from "./remember.ts";

interface ResourceReading {
  readonly stopped: "all" | "part" | "none";
  readonly isShared: boolean;
  /** How the table divides the resources and which of them are shared, as text. */
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

/** A key as a text that no other key has: neither groups nor names of resources contain a slash. */
export function textOf({ group, resource }: GroupResource): string {
  return `${group}/${resource}`;
}

/** What a table says about resources that move as a whole, read once: a plan asks for hundreds of keys. */
interface ResourceRules {
  readonly objects: readonly {
    readonly rule: Extract<RouteRule, { kind: "objects" }>;
    readonly keys: readonly GroupResource[];
  }[];
  readonly fences: readonly { readonly fence: GroupResource; readonly moves: boolean }[];
  /** Of the `sharded` rule; undefined without one. */
  readonly sharded: readonly GroupResource[] | undefined;
  readonly shared: readonly GroupResource[];
}

const resourceRulesOf = remember(({ rules, sharedResources }: RouteTable): ResourceRules => {
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

/** @param isKnown false for a namespace of only one of two tables: it has no owner under the other */
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

/** The shared part of a key: what is listed as shared, and what a `sharded` rule does not name. */
interface Sharing {
  readonly parts: readonly string[];
  /** Everything is shared, but for what a `sharded` rule names. */
  readonly isWhole: boolean;
  /** A `sharded` rule names some of the key. Otherwise other subsets own its cluster-scoped objects. */
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

// Which parts of the first key the others name, in an order that does not depend on how they were written.
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

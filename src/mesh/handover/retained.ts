// What a pod retains read-only: what it owned or retained under its present table and does not own under the
// next one. Otherwise informers would conclude that these objects were deleted. Pure. Invariant: a pod may
// write only to what it owns, so claims do not depend on this file.
//
//   Owned => Retained      the next table does not give the namespace to the pod's subset, or fences it
//   Retained => Owned      the subset gains the namespace again, for example after an undo: no watch ends, and no pod restarts
//   Retained => (nothing)  the pod ends: its replacement never owned the namespace. In place: after a moment (link/own-writes.ts)
//
// Partitioned and shared resources are not retained: clients list them again without a restart.

import { remember } from "../../base/remember.ts";
import { BUCKETS, CLUSTER_SCOPE, isInClusterScope } from "../../kube/place.ts";
import { fallbackOf } from "../ownership/owners.ts";
import { placePairs } from "../ownership/place-lists.ts";
import {
  DEFAULT_SUBSET,
  isFencedIn,
  isSharded,
  isVisibleBy,
  matchesResource,
  membersIn,
  type ResourceMatch,
  type RetainedClass,
  type RetainedRule,
  type RouteTable,
} from "../ownership/table.ts";
import { pairsOf } from "./claims.ts";
import { classFacts, classNumber } from "./class-facts.ts";

export interface SubsetTable {
  readonly subset: string;
  readonly table: RouteTable;
}

/** What the pod retains under `to`, in all places but namespaces that `to` does not know. */
export function retainedBetween(from: SubsetTable, to: SubsetTable): readonly RetainedClass[] {
  const [movesBefore, movesNext] = [movingAsWhole(from.table), movingAsWhole(to.table)];
  const shownBefore = classOfShown(from.table);
  const classes = new Map<string, { readonly rules: readonly RetainedRule[]; readonly namespaces: Set<string> }>();
  // Namespaces with equal states in both tables are compared once.
  const known = new Map<string, Set<string> | undefined>();
  // Most classes of the next table are alike for one subset.
  const knownByRules = new Map<string, Set<string> | undefined>();
  const retainedClassOf = (namespace: string): Set<string> | undefined => {
    const [owned, shown] = [ownedIn(from, namespace), shownBefore.get(namespace)?.rules ?? []];
    const next = ownedIn(to, namespace);
    const key = JSON.stringify([owned, shown, next]);
    if (!knownByRules.has(key)) knownByRules.set(key, retainedClassBy(owned, shown, next));
    return knownByRules.get(key);
  };
  const retainedClassBy = (owned: RetainedRule[], shown: readonly RetainedRule[], next: RetainedRule[]) => {
    const rules = canonicalRules(
      [movesBefore.lists, movesNext.lists, owned, shown, next],
      (group, resource) =>
        (isVisibleBy(owned, group, resource) || isVisibleBy(shown, group, resource)) &&
        !isVisibleBy(next, group, resource) &&
        !movesBefore.has(group, resource) &&
        !movesNext.has(group, resource),
    );
    if (rules.length === 0) return undefined;
    const text = JSON.stringify(rules);
    const found = classes.get(text) ?? { rules, namespaces: new Set() };
    classes.set(text, found);
    return found.namespaces;
  };
  const add = (namespace: string) => {
    const state = `${stateIn(from.table, namespace)} ${shownBefore.get(namespace)?.index} ${stateIn(to.table, namespace)}`;
    if (!known.has(state)) known.set(state, retainedClassOf(namespace));
    known.get(state)?.add(namespace);
  };
  if (hasSameRules(from, to)) {
    for (const place of lostBetween(from.table, to.table)) {
      add(place);
      // A bucket without a class is as the cluster scope.
      if (place === CLUSTER_SCOPE) for (const bucket of BUCKETS) add(bucket);
    }
    return [...classes.values()];
  }
  // All buckets, since either table may divide them.
  const others = new Set([CLUSTER_SCOPE, ...BUCKETS]);
  for (const namespace of shownBefore.keys()) if (to.table.classOf.has(namespace)) others.add(namespace);
  for (const namespace of others) add(namespace);
  for (const namespaces of ownedUnder(from, to.table)) {
    // Namespaces of one pair of classes are treated equally, apart from fences.
    let common: Set<string> | undefined;
    let isRead = false;
    for (const namespace of namespaces) {
      if (others.has(namespace) || !to.table.classOf.has(namespace) || isFencedIn(from.table, namespace)) continue;
      if (isFencedIn(to.table, namespace)) add(namespace);
      else {
        if (!isRead) common = retainedClassOf(namespace);
        isRead = true;
        common?.add(namespace);
        if (common === undefined && to.table.fenced.size === 0) break;
      }
    }
  }
  return [...classes.values()];
}

/** The namespaces in which the subset may own something, by the pairs of their classes in both tables. */
function* ownedUnder({ subset, table }: SubsetTable, next: RouteTable): Iterable<readonly string[]> {
  const { holders } = classFacts(table);
  for (const [number, targets] of pairsOf(next.classOf, table.classOf)) {
    if (holders(number).has(subset)) yield* targets.values();
  }
}

function hasSameRules(from: SubsetTable, to: SubsetTable): boolean {
  const [before, next] = [from.table, to.table];
  const isSame = before.rules === next.rules && before.sharedResources === next.sharedResources;
  return from.subset === to.subset && isSame && before.retained === undefined;
}

/** The places that a pod may lose between two tables with the same rules: those in other classes or newly fenced. */
function* lostBetween(from: RouteTable, to: RouteTable): Iterable<string> {
  for (const place of to.fenced) if (!from.fenced.has(place)) yield place;
  if (from.classOf === to.classOf && from.classes === to.classes) return;
  for (const { from: was, to: is, places } of placePairs(from.classOf, to.classOf)) {
    const isSame = was !== undefined && is !== undefined && from.classes[was]?.join() === to.classes[is]?.join();
    if (isSame) continue;
    for (const place of places) if (isInClusterScope(place) || to.classOf.has(place)) yield place;
  }
}

function classOfShown({
  retained = [],
}: RouteTable): Map<string, { readonly index: number; readonly rules: readonly RetainedRule[] }> {
  return new Map(retained.flatMap(({ namespaces, rules }, index) => [...namespaces].map((name) => [name, { index, rules }])));
}

function stateIn(table: RouteTable, namespace: string): string {
  return isFencedIn(table, namespace) ? "fenced" : String(classNumber(table, namespace));
}

/** What a subset owns in a namespace, apart from resources that move as a whole. The first match decides. */
function ownedIn({ subset, table }: SubsetTable, namespace: string): RetainedRule[] {
  if (isFencedIn(table, namespace)) return [];
  const { fences, limits, hidden, isShardedTable } = hiddenBy(table);
  const fallback: RetainedRule = { resources: [], visible: subset === DEFAULT_SUBSET && !isShardedTable };
  const members = membersIn(table, namespace);
  // In a namespace that the table does not know, no resource with a rule is visible.
  if (members === undefined) return [...fences, ...hidden, fallback];
  const inside = new Set(members);
  const missed = limits.filter(({ at }) => !inside.has(at)).map(({ rule }) => rule);
  const owners = members.flatMap((at): RetainedRule[] => {
    const rule = table.rules[at];
    return rule?.kind === "subset" ? [{ resources: rule.resources, visible: rule.subset === subset }] : [];
  });
  return [...fences, ...missed, ...owners, fallback];
}

/** The rules of a table that hide something, read once for all its namespaces. */
const hiddenBy = remember((table: RouteTable) => {
  const hide = ({ resources }: { readonly resources: readonly ResourceMatch[] }): RetainedRule => ({ resources, visible: false });
  const { rules } = table;
  return {
    fences: rules.filter(({ kind }) => kind === "fence").map(hide),
    limits: rules.flatMap((rule, at) => (rule.kind === "limit" ? [{ at, rule: hide(rule) }] : [])),
    hidden: rules.filter(({ kind }) => kind === "limit" || kind === "subset").map(hide),
    isShardedTable: isSharded(table),
  };
});

// A fence because of unreported pods does not count: it hides everything from a subset that has nothing yet.
const movingAsWhole = remember((table: RouteTable) => {
  const { rules, sharedResources } = table;
  const named = rules
    .filter((rule) => rule.kind === "objects" || (rule.kind === "fence" && rule.because === "moves"))
    .flatMap(({ resources }) => resources);
  const isShared = (group: string, resource: string) => fallbackOf(table, group, resource).kind === "everyone";
  const sharded = rules.flatMap(({ kind, resources }) => (kind === "sharded" ? resources : []));
  // Each class asks for the same names.
  const known = new Map<string, boolean>();
  const has = (group: string, resource: string) => matchesResource(named, group, resource) || isShared(group, resource);
  return {
    has(group: string, resource: string) {
      const key = `${group} ${resource}`;
      const answer = known.get(key) ?? has(group, resource);
      known.set(key, answer);
      return answer;
    },
    lists: [{ resources: [...named, ...sharedResources, ...sharded], visible: false }],
  };
});

/** Neither a group nor a resource has this name, so only the wildcard matches it. */
const OTHER = "/";

/**
 * The canonical list that gives the same answers as `isVisible`, so that lists do not grow with repeated
 * edits. `lists` must contain all names on which the answers depend.
 */
export function canonicalRules(
  lists: readonly (readonly RetainedRule[])[],
  isVisible: (group: string, resource: string) => boolean,
): RetainedRule[] {
  const matches = lists.flatMap((list) => list.flatMap(({ resources }) => resources));
  const groups = named(matches.flatMap(({ apiGroups }) => apiGroups));
  const resources = named(matches.flatMap((match) => match.resources));
  const fallback = isVisible(OTHER, OTHER);
  const otherGroups = groups.filter((group) => isVisible(group, OTHER) !== fallback);
  const otherResources = resources.filter((resource) => isVisible(OTHER, resource) !== fallback);
  // Exceptions to the wildcards below.
  const exact = groups.flatMap((group) =>
    [true, false].flatMap((visible): RetainedRule[] => {
      const those = resources.filter((resource) => {
        const isOther = otherGroups.includes(group) || otherResources.includes(resource);
        return isVisible(group, resource) === visible && (isOther ? !fallback : fallback) !== visible;
      });
      return those.length === 0 ? [] : [{ resources: [{ apiGroups: [group], resources: those }], visible }];
    }),
  );
  const wide = [
    ...(otherGroups.length === 0 ? [] : [{ apiGroups: otherGroups, resources: ["*"] }]),
    ...(otherResources.length === 0 ? [] : [{ apiGroups: ["*"], resources: otherResources }]),
  ];
  return [
    ...exact,
    ...(wide.length === 0 ? [] : [{ resources: wide, visible: !fallback }]),
    ...(fallback ? [{ resources: [], visible: true }] : []),
  ];
}

function named(names: readonly string[]): string[] {
  return [...new Set(names)].filter((name) => name !== "*").sort();
}

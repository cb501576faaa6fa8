// What a pod retains read-only: what it owned or retained by its present table and does not own by its next one. So none of its informers
// believes that objects were deleted which another subset owns now. Pure and level-based: it follows from the two tables. Called by plan-app, once for
// all pods of equal tables.
//
// Invariant: it is about reading only. What a pod may write follows from what it owns, so claims.ts does not use it.
//
//   Owned => Retained      when the next table does not give it to the pod's subset, or fences it
//   Retained => Owned      when it comes back, as after an undo: no watch has ended, and no restart is needed
//   Retained => (nothing)  with the pod: its replacement has never owned it
//
// Partitioned and shared resources are left out: they move as a whole, and clients list them again in place.
import {
  DEFAULT_SUBSET,
  matchesResource,
  type ResourceMatch,
  type RetainedClass,
  type RetainedRule,
  type RouteTable,
} from "../../route/table.ts";

/** A table as one subset enforces it. */
export interface SubsetTable {
  readonly subset: string;
  readonly table: RouteTable;
}

/** Cluster-scoped objects, of which the default subset has those that are not shared: they are lost with a change of subset. */
const CLUSTER_SCOPE = "";

/**
 * What a pod that enforces `from` retains under `to`. Namespaces that no longer exist are forgotten.
 * @param to with its fences: what is fenced is not owned
 */
export function retainedBetween(from: SubsetTable, to: SubsetTable): readonly RetainedClass[] {
  const movable = [...movingAsWhole(from.table), ...movingAsWhole(to.table)];
  const shownBefore = classOfShown(from.table);
  const classes = new Map<string, { readonly rules: readonly RetainedRule[]; readonly namespaces: Set<string> }>();
  // Namespaces of which both tables say the same are compared once.
  const known = new Map<string, Set<string> | undefined>();
  const retainedClassOf = (namespace: string): Set<string> | undefined => {
    const [owned, shown] = [ownedIn(from, namespace), shownBefore.get(namespace)?.rules ?? []];
    const next = ownedIn(to, namespace);
    const rules = canonicalRules(
      [[{ resources: movable, visible: false }], owned, shown, next],
      (group, resource) =>
        (isVisibleBy(owned, group, resource) || isVisibleBy(shown, group, resource)) &&
        !isVisibleBy(next, group, resource) &&
        !matchesResource(movable, group, resource),
    );
    if (rules.length === 0) return undefined;
    const text = JSON.stringify(rules);
    const found = classes.get(text) ?? { rules, namespaces: new Set() };
    classes.set(text, found);
    return found.namespaces;
  };
  for (const namespace of [CLUSTER_SCOPE, ...to.table.classOf.keys()]) {
    const state = `${stateIn(from.table, namespace)} ${shownBefore.get(namespace)?.index} ${stateIn(to.table, namespace)}`;
    if (!known.has(state)) known.set(state, retainedClassOf(namespace));
    known.get(state)?.add(namespace);
  }
  return [...classes.values()];
}

function classOfShown({
  retained = [],
}: RouteTable): Map<string, { readonly index: number; readonly rules: readonly RetainedRule[] }> {
  return new Map(retained.flatMap(({ namespaces, rules }, index) => [...namespaces].map((name) => [name, { index, rules }])));
}

// Equal for namespaces of which the table says the same.
function stateIn({ classOf, fenced }: RouteTable, namespace: string): string {
  if (namespace === CLUSTER_SCOPE) return "cluster";
  return fenced.has(namespace) ? "fenced" : String(classOf.get(namespace));
}

/** What a subset owns in a namespace, as ownersOf has it, but for what moves as a whole: the order of the rules linearised. */
function ownedIn({ subset, table }: SubsetTable, namespace: string): RetainedRule[] {
  const fallback: RetainedRule = { resources: [], visible: subset === DEFAULT_SUBSET };
  const hide = ({ resources }: { readonly resources: readonly ResourceMatch[] }): RetainedRule => ({ resources, visible: false });
  const fences = table.rules.filter(({ kind }) => kind === "fence").map(hide);
  if (namespace === CLUSTER_SCOPE) return [...fences, fallback];
  if (table.fenced.has(namespace)) return [];
  const index = table.classOf.get(namespace);
  const members = index === undefined ? undefined : table.classes[index];
  // In a namespace that the table does not know, no resource with a rule is visible.
  if (members === undefined) {
    const rules = table.rules.filter(({ kind }) => kind === "limit" || kind === "subset");
    return [...fences, ...rules.map(hide), fallback];
  }
  const limits = table.rules.filter(({ kind }, at) => kind === "limit" && !members.includes(at)).map(hide);
  const owners = members.flatMap((at): RetainedRule[] => {
    const rule = table.rules[at];
    return rule?.kind === "subset" ? [{ resources: rule.resources, visible: rule.subset === subset }] : [];
  });
  return [...fences, ...limits, ...owners, fallback];
}

// A fence of what little is known about is none of these: it hides everything from a subset that has nothing yet.
function movingAsWhole({ rules, sharedResources }: RouteTable): ResourceMatch[] {
  const isMovable = (rule: RouteTable["rules"][number]) =>
    rule.kind === "objects" || (rule.kind === "fence" && rule.because === "moves");
  return [...rules.filter(isMovable).flatMap(({ resources }) => resources), ...sharedResources];
}

/** A name that no resource and no group has: only the wildcard matches it. */
const OTHER = "/";

/** What the first rule that applies says; nothing applies: not visible. */
export function isVisibleBy(rules: readonly RetainedRule[], group: string, resource: string): boolean {
  const first = rules.find(({ resources }) => resources.length === 0 || matchesResource(resources, group, resource));
  return first?.visible ?? false;
}

/**
 * The one canonical list that answers as `isVisible` does, so that repeated edits do not make lists grow. `isVisible` is asked about the names in
 * the lists, and about one placeholder for all others.
 * @param lists every list that the question asks
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
  // What the wildcards below would say wrongly.
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

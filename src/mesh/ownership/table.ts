// The route table: the compiled rules of one app. The manager compiles it, snapshots carry it, and the proxy
// asks it (owners.ts). Pure. Invariant: every namespace belongs to a class, the set of rules that contain it,
// so that a question costs the same with any number of namespaces.
import type { LabelTerm } from "../../kube/label-selector.ts";
import { CLUSTER_SCOPE, isBucket, isInClusterScope } from "../../kube/place.ts";
import type { GroupResource } from "../../kube/types.ts";

/** The name of the default subset: pods that match no listed subset. */
export const DEFAULT_SUBSET = "";

/** Resources by group and name; "*" matches all. */
export interface ResourceMatch {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
}

interface RuleBase {
  readonly resources: readonly ResourceMatch[];
  /** The rule's place in the source object, for messages. */
  readonly origin: string;
}

export type RouteRule =
  /**
   * Only these resources are divided: where no subset rule gives them to a subset, they belong to nobody. All
   * others belong to everyone. It is the first rule of a table, or absent, and always has resources.
   */
  | (RuleBase & { readonly kind: "sharded" })
  /** Namespaces outside belong to nobody in the app. */
  | (RuleBase & { readonly kind: "limit" })
  /** Namespaces inside belong to the subset. */
  | (RuleBase & { readonly kind: "subset"; readonly subset: string })
  /** Objects whose labels do not match all terms belong to nobody in the app. */
  | (RuleBase & { readonly kind: "object-limit"; readonly terms: readonly LabelTerm[] })
  /** Objects whose labels match belong to the subset. One term, since the default subset needs its negation. */
  | (RuleBase & { readonly kind: "objects"; readonly subset: string; readonly term: LabelTerm })
  | FenceRule;

/**
 * The subset may not write or newly see the resources yet. Only a handover makes this rule. `moves`: all of
 * them, also shared ones, move between subsets, and reads are refused, since clients would believe an empty
 * list. `unreported`: the subset has nothing yet but shared resources, since the claims of other subsets are
 * not known.
 */
export type FenceRule = RuleBase & { readonly kind: "fence"; readonly because: "moves" | "unreported" };

export interface RouteTable {
  /** In spec order. A rule without resources is for all but shared ones. Rules on labels have resources. */
  readonly rules: readonly RouteRule[];
  /** The indices into `rules` that contain the namespaces of this class, ascending. */
  readonly classes: readonly (readonly number[])[];
  /**
   * The class of every known place. A namespace that is missing is unknown. CLUSTER_SCOPE is missing without
   * a `sharded` rule: then no rule on namespaces applies to cluster-scoped objects. Buckets are missing
   * unless shards own cluster-scoped objects by name: then each counts as CLUSTER_SCOPE.
   */
  readonly classOf: ReadonlyMap<string, number>;
  /** Resources that every subset sees whole. Without effect beside a `sharded` rule. */
  readonly sharedResources: readonly ResourceMatch[];
  /** Places that the pods of this table may neither write nor newly see yet, since a pod of another subset may still write there. */
  readonly fenced: ReadonlySet<string>;
  /** What the pod may read beyond what its subset owns. A namespace is in one class at most. */
  readonly retained?: readonly RetainedClass[];
}

/** Namespaces that the pod's subset has lost and that this pod may still read. */
export interface RetainedClass {
  readonly namespaces: ReadonlySet<string>;
  /** The first rule that applies to a resource decides. Without resources, a rule applies to all. */
  readonly rules: readonly RetainedRule[];
}

/** What the proxy retains of its own accord, for a moment: never sent. What the manager has it retain stays until the pod is restarted. */
export interface MomentaryClass extends RetainedClass {
  readonly untilShown: true;
}

export function isMomentary(each: RetainedClass): each is MomentaryClass {
  return "untilShown" in each;
}

export interface RetainedRule {
  readonly resources: readonly ResourceMatch[];
  readonly visible: boolean;
}

export function matchesResource(matches: readonly ResourceMatch[], group: string, resource: string): boolean {
  const has = (list: readonly string[], value: string) => list.includes("*") || list.includes(value);
  return matches.some((match) => has(match.apiGroups, group) && has(match.resources, resource));
}

/** The pairs of group and resource in the matches; "*" stays a wildcard. */
export function resourcesIn(matches: readonly ResourceMatch[]): GroupResource[] {
  return matches.flatMap(({ apiGroups, resources }) =>
    apiGroups.flatMap((group) => resources.map((resource) => ({ group, resource }))),
  );
}

/** The answer of the first rule that applies; false if none applies. */
export function isVisibleBy(rules: readonly RetainedRule[], group: string, resource: string): boolean {
  const first = rules.find(({ resources }) => resources.length === 0 || matchesResource(resources, group, resource));
  return first?.visible ?? false;
}

export function limitsOf(rules: readonly RouteRule[]): number[] {
  return rules.flatMap(({ kind }, at) => (kind === "limit" ? [at] : []));
}

export function shardedRuleOf({ rules }: RouteTable): RouteRule | undefined {
  return rules.find(({ kind }) => kind === "sharded");
}

export function isSharded(table: RouteTable): boolean {
  return shardedRuleOf(table) !== undefined;
}

export function namespacesOf({ classOf }: RouteTable): string[] {
  return [...classOf.keys()].filter((name) => !isInClusterScope(name));
}

export function classIn({ classOf }: Pick<RouteTable, "classOf">, place: string): number | undefined {
  return classOf.get(place) ?? (isBucket(place) ? classOf.get(CLUSTER_SCOPE) : undefined);
}

/** True for a fenced place, and for a bucket that counts as CLUSTER_SCOPE while that is fenced. */
export function isFencedIn({ classOf, fenced }: RouteTable, place: string): boolean {
  return fenced.has(place) || (isBucket(place) && !classOf.has(place) && fenced.has(CLUSTER_SCOPE));
}

/** The rules that contain a place; undefined if the table does not know it. */
export function membersIn(table: RouteTable, place: string): readonly number[] | undefined {
  const index = classIn(table, place);
  if (index !== undefined) return table.classes[index];
  // No limit excludes cluster-scoped objects without a class, so every limit counts as containing them.
  if (isInClusterScope(place)) return limitsOf(table.rules);
  return undefined;
}

// The route table: the compiled answer to "which subset owns this object?" for one app. Pure. Invariants: an
// object has at most one owner; every namespace belongs to a class, the set of rules that contain it, so that
// a question costs the same with any number of namespaces. The manager compiles it, snapshots carry it, and
// the proxy asks it.
import { type Labels, type LabelTerm, matchesTerms, negateTerm } from "../kube/label-selector.ts";
import { CLUSTER_SCOPE, isBucket, isInClusterScope } from "../kube/place.ts";
import type { GroupResource } from "../kube/types.ts";

/** The name of the default subset: pods that match no listed subset. */
export const DEFAULT_SUBSET = "";

/** Resources by group and name; "*" is the wildcard in both lists. */
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
   * Other resources belong to everyone, whatever subset rules say. These belong to nobody where no subset
   * rule gives them to a subset: the default subset has no share. The first rule of a table, or absent. It
   * always has resources.
   */
  | (RuleBase & { readonly kind: "sharded" })
  /** Namespaces outside belong to nobody in the app. */
  | (RuleBase & { readonly kind: "limit" })
  /** Namespaces inside belong to the subset. */
  | (RuleBase & { readonly kind: "subset"; readonly subset: string })
  /** Objects whose labels do not match all terms belong to nobody in the app. */
  | (RuleBase & { readonly kind: "object-limit"; readonly terms: readonly LabelTerm[] })
  /** Objects whose labels match belong to the subset. One term: the default subset needs its negation. */
  | (RuleBase & { readonly kind: "objects"; readonly subset: string; readonly term: LabelTerm })
  | FenceRule;

/**
 * The subset may not write or newly see the resources yet. Only the handover makes such a rule. `moves`: all
 * of them move between subsets, shared ones too; reads are refused, since clients would believe an empty
 * list. `unreported`: the subset has nothing yet but shared resources, and what other subsets have is not
 * known.
 */
export type FenceRule = RuleBase & { readonly kind: "fence"; readonly because: "moves" | "unreported" };

export interface RouteTable {
  /** In spec order. A rule without resources is for all but shared ones. Rules on labels have resources. */
  readonly rules: readonly RouteRule[];
  /** The indices into `rules` that contain the namespaces of this class, ascending. */
  readonly classes: readonly (readonly number[])[];
  /**
   * The class of every known namespace. A namespace that is missing is unknown. CLUSTER_SCOPE is here only in
   * a table with a `sharded` rule; otherwise no rule on namespaces applies to cluster-scoped objects. Buckets
   * are here only if shards own cluster-scoped objects by name; otherwise each is as CLUSTER_SCOPE.
   */
  readonly classOf: ReadonlyMap<string, number>;
  /** Resources that every subset sees whole. Without effect beside a `sharded` rule. */
  readonly sharedResources: readonly ResourceMatch[];
  /** Places that move between subsets: no subset may write or newly see them yet. */
  readonly fenced: ReadonlySet<string>;
  /** What the pod may read beyond what its subset owns. A namespace is in one class at most. */
  readonly retained?: readonly RetainedClass[];
}

/** Namespaces that the pod's subset has lost and that this pod may still read, until it is restarted. */
export interface RetainedClass {
  readonly namespaces: ReadonlySet<string>;
  /** The first rule that applies to a resource decides. Without resources, a rule applies to all. */
  readonly rules: readonly RetainedRule[];
}

export interface RetainedRule {
  readonly resources: readonly ResourceMatch[];
  readonly visible: boolean;
}

export type Owner =
  | { readonly kind: "subset"; readonly subset: string }
  | { readonly kind: "everyone" }
  /** These subsets and the default one, by the objects' labels. Never if the labels are known. */
  | { readonly kind: "labels"; readonly subsets: readonly string[] }
  /** Outside of a global limit, or (`isGap`) of every shard. `origin`: of the limit or the `sharded` rule. */
  | { readonly kind: "nobody"; readonly origin: string; readonly isGap?: true }
  | { readonly kind: "moving" }
  /** The manager has not said yet. */
  | { readonly kind: "unknown" };

export interface ResourceOwners {
  /** The owner in a place. With labels: the owner of an object that has them. */
  ownerOf(namespace: string, labels?: Labels): Owner;
  /** The one owner of every namespace, known or not; undefined if there are several or none. */
  readonly sole: Owner | undefined;
  /** All of the resource moves. False for a fence of the kind `unreported`. */
  readonly isMoving: boolean;
  /** Namespaces alone decide: the resource is neither partitioned by label nor shared. */
  readonly isByNamespace: boolean;
  /** The owner after all moves; as `ownerOf` where nothing moves. */
  nextOwnerOf(namespace: string): Owner;
  /** The labels of the subset's objects in its own namespaces; none if labels do not matter. */
  termsOf(subset: string): readonly LabelTerm[];
}

const UNKNOWN: Owner = { kind: "unknown" };
const MOVING: Owner = { kind: "moving" };
const EVERYONE: Owner = { kind: "everyone" };
/** The terms of a selector that matches no object: none has a label and has it not. */
export const NO_OBJECT: readonly LabelTerm[] = (["exists", "!"] as const).map((operator) => ({
  key: "ctrlmesh.kruise.io/nothing",
  operator,
  values: [],
}));
const DEFAULT_OWNER: Owner = { kind: "subset", subset: DEFAULT_SUBSET };

export function matchesResource(matches: readonly ResourceMatch[], group: string, resource: string): boolean {
  const has = (list: readonly string[], value: string) => list.includes("*") || list.includes(value);
  return matches.some((match) => has(match.apiGroups, group) && has(match.resources, resource));
}

/** The single resources that matches name; "*" stays the wildcard. */
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

function shardedRuleOf({ rules }: RouteTable): RouteRule | undefined {
  return rules.find(({ kind }) => kind === "sharded");
}

export function isSharded(table: RouteTable): boolean {
  return shardedRuleOf(table) !== undefined;
}

export function namespacesOf({ classOf }: RouteTable): string[] {
  return [...classOf.keys()].filter((name) => !isInClusterScope(name));
}

/** The class of a place; undefined if it has none. */
export function classIn({ classOf }: Pick<RouteTable, "classOf">, place: string): number | undefined {
  return classOf.get(place) ?? (isBucket(place) ? classOf.get(CLUSTER_SCOPE) : undefined);
}

/** True for a place that is fenced, and for a bucket that is as a fenced CLUSTER_SCOPE. */
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

/** The owner of what no rule on namespaces or labels gives to a subset. */
export function fallbackOf(table: RouteTable, group: string, resource: string): Owner {
  const sharded = shardedRuleOf(table);
  if (sharded === undefined) return matchesResource(table.sharedResources, group, resource) ? EVERYONE : DEFAULT_OWNER;
  if (!matchesResource(sharded.resources, group, resource)) return EVERYONE;
  return { kind: "nobody", origin: sharded.origin, isGap: true };
}

/**
 * Compiles the owners of one resource. Order of the rules (docs/design.md, "Who owns what"): global limits,
 * subset rules in spec order, shared resources, default subset (with a `sharded` rule: nobody).
 *
 * A resource that a subset's objectSelector names is partitioned by label only: subset rules on namespaces do
 * not apply (admission refuses specs with both), it is not shared, and objects that no selector matches are
 * the default subset's. Limits apply.
 */
export function ownersOf(table: RouteTable, group: string, resource: string): ResourceOwners {
  const names = (rule: RouteRule) => matchesResource(rule.resources, group, resource);
  const division = divisionOf(table, names);
  const fallback = division.owner ?? fallbackOf(table, group, resource);
  const isPublic = fallback.kind === "everyone";
  const applies = (rule: RouteRule) => (rule.resources.length === 0 ? !isPublic : names(rule));
  // Shards divide the named resources and nothing else.
  const isUndivided = division.owner !== undefined || (isPublic && isSharded(table));
  // The rules on namespaces that apply, at their places; the other places stay empty.
  const inForce = table.rules.map((rule) => {
    if (rule.kind !== "limit" && (rule.kind !== "subset" || isUndivided)) return undefined;
    return applies(rule) ? rule : undefined;
  });
  const owners = table.classes.map((members) => ownerInClass(inForce, members, fallback));
  const dependsOnNamespace = fallback.kind === "nobody" || inForce.some((rule) => rule !== undefined);
  const isFencedBecause = (because: FenceRule["because"]) =>
    table.rules.some((rule) => rule.kind === "fence" && rule.because === because && names(rule));
  const isMoving = isFencedBecause("moves");
  // A fence of the kind `unreported` leaves shared resources alone.
  const isFenced = isMoving || (!isPublic && isFencedBecause("unreported"));

  const nextOwnerOf = (place: string): Owner => {
    const index = classIn(table, place);
    if (index !== undefined) return owners[index] ?? UNKNOWN;
    return dependsOnNamespace && !isInClusterScope(place) ? UNKNOWN : fallback;
  };
  const ownerIn = (place: string): Owner => {
    if (isFenced) return MOVING;
    const owner = nextOwnerOf(place);
    return isFencedIn(table, place) && owner.kind !== "everyone" ? MOVING : owner;
  };
  return {
    sole: dependsOnNamespace || isFenced || (table.fenced.size > 0 && !isPublic) ? undefined : fallback,
    ownerOf: (namespace, labels) => (labels === undefined ? ownerIn(namespace) : division.narrow(ownerIn(namespace), labels)),
    isMoving,
    isByNamespace: fallback.kind === "subset" || fallback.kind === "nobody",
    nextOwnerOf,
    termsOf: division.termsOf,
  };
}

function ownerInClass(inForce: readonly (RouteRule | undefined)[], members: readonly number[], fallback: Owner): Owner {
  const missed = inForce.find((rule, index) => rule?.kind === "limit" && !members.includes(index));
  if (missed !== undefined) return { kind: "nobody", origin: missed.origin };
  for (const index of members) {
    const rule = inForce[index];
    if (rule?.kind === "subset") return { kind: "subset", subset: rule.subset };
  }
  return fallback;
}

interface Division {
  /** Undefined if no subset has a rule on labels. */
  readonly owner: Owner | undefined;
  termsOf(subset: string): readonly LabelTerm[];
  /** The owner of one object, from the owner of its namespace. */
  narrow(owner: Owner, labels: Labels): Owner;
}

// The first subset with a matching term owns the object, so the terms of a subset are its own and the
// negations of the earlier ones. A subset has one rule for a resource: admission refuses two, since their
// conjunction has no negation.
function divisionOf(table: RouteTable, names: (rule: RouteRule) => boolean): Division {
  const limits = table.rules.flatMap((rule) => (rule.kind === "object-limit" && names(rule) ? [rule] : []));
  const rules = table.rules
    .flatMap((rule) => (rule.kind === "objects" && names(rule) ? [rule] : []))
    .filter(({ subset }, index, all) => all.findIndex((other) => other.subset === subset) === index);
  const limitTerms = limits.flatMap(({ terms }) => terms);
  return {
    owner: rules.length === 0 ? undefined : { kind: "labels", subsets: rules.map(({ subset }) => subset) },
    termsOf(subset) {
      const own = rules.find((rule) => rule.subset === subset);
      if (own === undefined && rules.length > 0 && subset !== DEFAULT_SUBSET) return NO_OBJECT;
      const earlier = own === undefined ? rules : rules.slice(0, rules.indexOf(own));
      const others = earlier.map(({ term }) => negateTerm(term));
      return [...limitTerms, ...others, ...(own === undefined ? [] : [own.term])];
    },
    narrow(owner, labels) {
      if (owner.kind === "moving" || owner.kind === "unknown" || owner.kind === "nobody") return owner;
      const missed = limits.find(({ terms }) => !matchesTerms(terms, labels));
      if (missed !== undefined) return { kind: "nobody", origin: missed.origin };
      if (owner.kind !== "labels") return owner;
      const first = rules.find(({ term }) => matchesTerms([term], labels));
      return first === undefined ? DEFAULT_OWNER : { kind: "subset", subset: first.subset };
    },
  };
}

export function isOwnedBy(owner: Owner, subset: string): boolean {
  switch (owner.kind) {
    case "everyone":
      return true;
    case "subset":
      return owner.subset === subset;
    case "labels":
      return subset === DEFAULT_SUBSET || owner.subsets.includes(subset);
    default:
      return false;
  }
}

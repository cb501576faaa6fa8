// Who owns the objects of one resource, by the rules of a table. Pure. Invariants: an object has at most one
// owner; an answer costs the same with any number of namespaces.
import { type Labels, type LabelTerm, matchesTerms, negateTerm } from "../../kube/label-selector.ts";
import { isInClusterScope } from "../../kube/place.ts";
import {
  classIn,
  DEFAULT_SUBSET,
  type FenceRule,
  isFencedIn,
  isSharded,
  matchesResource,
  type RouteRule,
  type RouteTable,
  shardedRuleOf,
} from "./table.ts";

export type Owner =
  | { readonly kind: "subset"; readonly subset: string }
  | { readonly kind: "everyone" }
  /** These subsets and the default one own objects by their labels, which are not known here. */
  | { readonly kind: "labels"; readonly subsets: readonly string[] }
  /** The place is outside of a limit, or (`isGap`) outside of every shard. `origin` is that of the rule. */
  | { readonly kind: "nobody"; readonly origin: string; readonly isGap?: true }
  | { readonly kind: "moving" }
  /** The manager has not sent the place yet. */
  | { readonly kind: "unknown" };

export interface ResourceOwners {
  /** The owner of what is in a place; with labels, the owner of an object that has them. */
  ownerOf(namespace: string, labels?: Labels): Owner;
  /** The owner of every namespace, known or not; undefined if there is no single one. */
  readonly sole: Owner | undefined;
  /** All of the resource moves: a fence because of `moves` covers it. */
  readonly isMoving: boolean;
  /** Namespaces alone decide: the resource is neither partitioned by label nor shared. */
  readonly isByNamespace: boolean;
  /** The owner after all moves. */
  nextOwnerOf(namespace: string): Owner;
  /** The labels of the subset's objects in its own namespaces; none if labels do not matter. */
  termsOf(subset: string): readonly LabelTerm[];
}

const UNKNOWN: Owner = { kind: "unknown" };
const MOVING: Owner = { kind: "moving" };
const EVERYONE: Owner = { kind: "everyone" };
/** The terms of a selector that matches no object, since they contradict each other. */
export const NO_OBJECT: readonly LabelTerm[] = (["exists", "!"] as const).map((operator) => ({
  key: "ctrlmesh.kruise.io/nothing",
  operator,
  values: [],
}));
const DEFAULT_OWNER: Owner = { kind: "subset", subset: DEFAULT_SUBSET };

/** The owner of what no rule on namespaces or labels gives to a subset. */
export function fallbackOf(table: RouteTable, group: string, resource: string): Owner {
  const sharded = shardedRuleOf(table);
  if (sharded === undefined) return matchesResource(table.sharedResources, group, resource) ? EVERYONE : DEFAULT_OWNER;
  if (!matchesResource(sharded.resources, group, resource)) return EVERYONE;
  return { kind: "nobody", origin: sharded.origin, isGap: true };
}

/**
 * Compiles the owners of one resource. The order of the rules is (docs/design.md, "Who owns what"): global
 * limits, subset rules in spec order, shared resources, default subset (with a `sharded` rule: nobody).
 *
 * A resource that a subset's objectSelector names is partitioned by label only: limits apply, but subset
 * rules on namespaces do not (admission refuses specs with both). It is not shared, and objects that no
 * selector matches belong to the default subset.
 */
export function ownersOf(table: RouteTable, group: string, resource: string): ResourceOwners {
  const names = (rule: RouteRule) => matchesResource(rule.resources, group, resource);
  const division = divisionOf(table, names);
  const fallback = division.owner ?? fallbackOf(table, group, resource);
  const isPublic = fallback.kind === "everyone";
  const applies = (rule: RouteRule) => (rule.resources.length === 0 ? !isPublic : names(rule));
  // Shards divide the named resources and nothing else.
  const isUndivided = division.owner !== undefined || (isPublic && isSharded(table));
  // The rules on namespaces that apply, at their indices; undefined for all other rules.
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

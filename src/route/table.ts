// The route table: the compiled, pure answer to "who owns (resource, namespace)?" for one app. Made by the manager's
// translation, carried by snapshots, asked by the proxy. Invariant: the cost of a question does not depend on the number
// of namespaces, since every namespace belongs to a class, the set of rules that contain it.

/** The name of the default subset: pods that match no listed subset. */
export const DEFAULT_SUBSET = "";

/** Resources by group and name; "*" is the wildcard in both lists. */
export interface ResourceMatch {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
}

/** LIMIT: namespaces outside belong to nobody in the app. SUBSET: namespaces inside belong to the subset. */
export type RouteRule =
  | { readonly kind: "limit"; readonly resources: readonly ResourceMatch[]; readonly origin: string }
  | { readonly kind: "subset"; readonly subset: string; readonly resources: readonly ResourceMatch[]; readonly origin: string };

export interface RouteTable {
  /** In spec order; a rule without resources applies to all that are not public. */
  readonly rules: readonly RouteRule[];
  /** The indices into `rules` that contain the namespaces of this class, ascending. */
  readonly classes: readonly (readonly number[])[];
  /** The class of every known namespace. A namespace that is missing is unknown. */
  readonly classOf: ReadonlyMap<string, number>;
  /** Resources that every subset sees whole. */
  readonly publicResources: readonly ResourceMatch[];
  /** Namespaces that move between subsets: nobody may write or newly see them yet. */
  readonly fenced: ReadonlySet<string>;
}

/** Who owns a (resource, namespace). */
export type Owner =
  | { readonly kind: "subset"; readonly subset: string }
  | { readonly kind: "everyone" }
  /** Outside of a global limit; `origin` is the limit's place in the VirtualApp. */
  | { readonly kind: "nobody"; readonly origin: string }
  /** The namespace moves to another subset. */
  | { readonly kind: "moving" }
  /** The manager has not said yet. */
  | { readonly kind: "unknown" };

/** The owners of one resource. */
export interface ResourceOwners {
  /** The owner in a namespace; "" asks for cluster-scoped objects. */
  ownerOf(namespace: string): Owner;
  /** The one owner of every namespace, known or not; undefined if there are several or none. */
  readonly sole: Owner | undefined;
}

const UNKNOWN: Owner = { kind: "unknown" };
const MOVING: Owner = { kind: "moving" };
const EVERYONE: Owner = { kind: "everyone" };
const DEFAULT_OWNER: Owner = { kind: "subset", subset: DEFAULT_SUBSET };

/** True if one of the matches names the resource. */
export function matchesResource(matches: readonly ResourceMatch[], group: string, resource: string): boolean {
  const has = (list: readonly string[], value: string) => list.includes("*") || list.includes(value);
  return matches.some((match) => has(match.apiGroups, group) && has(match.resources, resource));
}

/**
 * Compiles the owners of one resource. Order of the rules, as in semantics.md: global limits, subset rules in spec order,
 * public resources, default subset. A rule that names no resources does not apply to a public one.
 */
export function ownersOf(table: RouteTable, group: string, resource: string): ResourceOwners {
  const isPublic = matchesResource(table.publicResources, group, resource);
  const applies = table.rules.map((rule) =>
    rule.resources.length === 0 ? !isPublic : matchesResource(rule.resources, group, resource),
  );
  const limits = table.rules.flatMap((rule, index) =>
    rule.kind === "limit" && applies[index] ? [{ index, origin: rule.origin }] : [],
  );
  const fallback = isPublic ? EVERYONE : DEFAULT_OWNER;
  const owners = table.classes.map((members): Owner => {
    const missed = limits.find((limit) => !members.includes(limit.index));
    if (missed !== undefined) return { kind: "nobody", origin: missed.origin };
    for (const index of members) {
      const rule = table.rules[index];
      if (rule?.kind === "subset" && applies[index]) return { kind: "subset", subset: rule.subset };
    }
    return fallback;
  });
  return {
    sole: applies.includes(true) || (table.fenced.size > 0 && !isPublic) ? undefined : fallback,
    ownerOf(namespace) {
      if (namespace === "") return fallback;
      const index = table.classOf.get(namespace);
      const owner = index === undefined ? unknownOwner(applies, fallback) : (owners[index] ?? UNKNOWN);
      // What everybody sees does not move.
      return table.fenced.has(namespace) && owner.kind !== "everyone" ? MOVING : owner;
    },
  };
}

// Where no rule can apply to the resource, an unknown namespace has the same owner as every other one.
function unknownOwner(applies: readonly boolean[], fallback: Owner): Owner {
  return applies.includes(true) ? UNKNOWN : fallback;
}

/** True if `subset` is an owner. */
export function isOwnedBy(owner: Owner, subset: string): boolean {
  return owner.kind === "everyone" || (owner.kind === "subset" && owner.subset === subset);
}

/** The owner in words, for messages: `subset "v2"`, "the default subset". */
export function ownerText(owner: Owner): string {
  switch (owner.kind) {
    case "subset":
      return owner.subset === DEFAULT_SUBSET ? "the default subset" : `subset "${owner.subset}"`;
    case "everyone":
      return "every subset";
    case "nobody":
      return `nobody in this app (outside of ${owner.origin})`;
    case "moving":
      return "nobody yet: it is moving between subsets";
    case "unknown":
      return "not known yet";
    default:
      return owner satisfies never;
  }
}

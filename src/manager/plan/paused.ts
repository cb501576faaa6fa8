// spec.route.paused: the desired table of an app whose namespaces stay with their present owners. Pure;
// called by plan-app. The table in force gives the present owners. It includes moves that have begun, so
// these are completed. The spec's rules apply only to namespaces that this table does not contain. Invariant:
// applied to its own result, the function changes nothing.
//
// Resources that move as a whole (partitioned by label or shared, also by a `sharded` rule) keep the rules in
// force. A subset that the spec no longer has cannot be kept: it has no pods, so the spec's rules apply to
// its namespaces.
import { isInClusterScope } from "../../kube/place.ts";
import { classIn, namespacesOf, type RouteRule, type RouteTable } from "../../route/table.ts";
import { createSignatures } from "./claims.ts";

export interface PausedRoute {
  readonly desired: RouteTable;
  /** The number of namespaces that have another owner than the spec's rules demand. */
  readonly kept: number;
}

/**
 * Keeps the present owners.
 * @param bySpec the spec's table for the existing namespaces
 * @param inForce see tableInForce; undefined if there is nothing to keep
 */
export function pauseAt(bySpec: RouteTable, inForce: RouteTable | undefined, subsets: readonly string[]): PausedRoute {
  if (inForce === undefined) return { desired: bySpec, kept: 0 };
  // Fences and retained namespaces belong to one subset and one moment. Fences are the last rules, so the
  // other rules keep their places.
  const rules = inForce.rules.filter(({ kind }) => kind !== "fence");
  const isKept = inForce.classes.map((members) =>
    members.every((at) => {
      const rule = rules[at];
      return rule?.kind !== "subset" || subsets.includes(rule.subset);
    }),
  );
  const keptClass = (namespace: string) => {
    const index = inForce.classOf.get(namespace);
    return index !== undefined && isKept[index] === true ? index : undefined;
  };
  // The cluster scope and its buckets keep their classes, or stay without.
  const namespaces = [...namespacesOf(bySpec), ...[...inForce.classOf.keys()].filter(isInClusterScope)];
  const needsSpec = namespaces.some((namespace) => keptClass(namespace) === undefined);
  const joined = needsSpec ? joinRules(rules, bySpec.rules) : { rules, places: [] };
  const desired: RouteTable = {
    rules: joined.rules,
    ...joinClasses(namespaces, (namespace) => {
      const index = keptClass(namespace);
      if (index !== undefined) return { key: index, members: () => keptMembers(inForce.classes[index] ?? [], rules, joined) };
      const own = classIn(bySpec, namespace) ?? 0;
      return { key: -1 - own, members: () => specMembers(bySpec.classes[own] ?? [], rules, joined) };
    }),
    sharedResources: inForce.sharedResources,
    fenced: new Set(),
  };
  const [now, asked] = [createSignatures(desired), createSignatures(bySpec)];
  return { desired, kept: namespacesOf(bySpec).filter((namespace) => now(namespace) !== asked(namespace)).length };
}

interface JoinedRules {
  readonly rules: readonly RouteRule[];
  /**
   * The index of each of the spec's rules in `rules`; undefined for a rule that is not about namespaces,
   * since a pause keeps those in force.
   */
  readonly places: readonly (number | undefined)[];
}

// Appends the spec's rules on namespaces, unless the rules in force already contain them in this order. So
// the list does not grow.
function joinRules(inForce: readonly RouteRule[], spec: readonly RouteRule[]): JoinedRules {
  const isAboutNamespaces = ({ kind }: RouteRule) => kind === "limit" || kind === "subset";
  const texts = inForce.map((rule) => (isAboutNamespaces(rule) ? textOf(rule) : ""));
  let from = 0;
  const found = spec.map((rule) => {
    if (!isAboutNamespaces(rule)) return undefined;
    const at = texts.indexOf(textOf(rule), from);
    from = at < 0 ? texts.length : at + 1;
    return at;
  });
  if (!found.includes(-1)) return { rules: inForce, places: found };
  const rules = [...inForce];
  const places = spec.map((rule) => (isAboutNamespaces(rule) ? rules.push(rule) - 1 : undefined));
  return { rules, places };
}

function textOf(rule: RouteRule): string {
  return JSON.stringify([rule.kind, rule.kind === "subset" ? rule.subset : "", rule.resources]);
}

// The limits of one set of rules do not apply to namespaces under the other set, so they count as containing
// these namespaces.
function keptMembers(members: readonly number[], inForce: readonly RouteRule[], { rules }: JoinedRules): number[] {
  return [...members, ...limitsOf(rules).filter((at) => at >= inForce.length)];
}

function specMembers(members: readonly number[], inForce: readonly RouteRule[], { rules, places }: JoinedRules): number[] {
  const own = members.flatMap((at) => places[at] ?? []);
  const others = limitsOf(rules).filter((at) => at < inForce.length && !places.includes(at));
  return [...own, ...others].sort((a, b) => a - b);
}

function limitsOf(rules: readonly RouteRule[]): number[] {
  return rules.flatMap(({ kind }, at) => (kind === "limit" ? [at] : []));
}

function joinClasses(
  namespaces: readonly string[],
  classify: (namespace: string) => { readonly key: number; readonly members: () => readonly number[] },
): Pick<RouteTable, "classes" | "classOf"> {
  const classes: (readonly number[])[] = [];
  const indexOfKey = new Map<number, number>();
  const indexOfMembers = new Map<string, number>();
  const classOf = new Map<string, number>();
  for (const namespace of namespaces) {
    const { key, members } = classify(namespace);
    let index = indexOfKey.get(key);
    if (index === undefined) {
      const list = members();
      const text = list.join(",");
      index = indexOfMembers.get(text) ?? classes.push(list) - 1;
      indexOfMembers.set(text, index);
      indexOfKey.set(key, index);
    }
    classOf.set(namespace, index);
  }
  return { classes, classOf };
}

// spec.route.paused: the desired table of an app whose namespaces stay with the owners that they have. Pure; called by plan-app. The
// newest table that a live pod may enforce says who has what: what has begun to move is in it, and is finished. Only namespaces that
// it does not know go by the spec's rules. Invariant: applied to its own result it changes nothing, so a pause is at rest.
//
// What moves as a whole (partitioned by label or shared) stays by the rules in force. A subset that the spec has no more cannot be kept: no
// pod is in it, so its namespaces go by the spec.
import type { RouteRule, RouteTable } from "../../route/table.ts";
import { createSignatures } from "./claims.ts";

export interface PausedRoute {
  readonly desired: RouteTable;
  /** Namespaces that have another owner than the spec's rules give them. */
  readonly kept: number;
}

/**
 * Holds what is in force.
 * @param bySpec the table that the spec asks for, of the namespaces that there are
 * @param inForce the newest table of the app; undefined if no pod has one: then there is nothing to keep
 */
export function pauseAt(bySpec: RouteTable, inForce: RouteTable | undefined, subsets: readonly string[]): PausedRoute {
  if (inForce === undefined) return { desired: bySpec, kept: 0 };
  // Fences and what is shown are of one subset and one moment. Fences stand last, so the other rules keep their places.
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
  const namespaces = [...bySpec.classOf.keys()];
  const needsSpec = namespaces.some((namespace) => keptClass(namespace) === undefined);
  const joined = needsSpec ? joinRules(rules, bySpec.rules) : { rules, places: [] };
  const desired: RouteTable = {
    rules: joined.rules,
    ...joinClasses(namespaces, (namespace) => {
      const index = keptClass(namespace);
      if (index !== undefined) return { key: index, members: () => keptMembers(inForce.classes[index] ?? [], rules, joined) };
      const own = bySpec.classOf.get(namespace) ?? 0;
      return { key: -1 - own, members: () => specMembers(bySpec.classes[own] ?? [], rules, joined) };
    }),
    sharedResources: inForce.sharedResources,
    fenced: new Set(),
  };
  const [now, asked] = [createSignatures(desired), createSignatures(bySpec)];
  return { desired, kept: namespaces.filter((namespace) => now(namespace) !== asked(namespace)).length };
}

interface JoinedRules {
  readonly rules: readonly RouteRule[];
  /** Where each of the spec's rules stands among them; undefined for one on labels, which a pause leaves as it is. */
  readonly places: readonly (number | undefined)[];
}

// The spec's rules on namespaces are appended, unless they stand there already in their order: then nothing grows.
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

// The limits of the one set say nothing about namespaces that go by the other: they count as containing them.
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

// What the rules of a table say about each of its classes: who holds something there, and the ownership as
// text. Pure. Invariant: a class costs as much as it has members, and each is read once for all tables with
// the same rules and classes: the tables of the subsets differ in fences only.
import { createHash } from "node:crypto";
import { isInClusterScope } from "../../kube/place.ts";
import { classIn, DEFAULT_SUBSET, isFencedIn, limitsOf, type RouteRule, type RouteTable } from "../../route/table.ts";
import { remember } from "./remember.ts";

/** Numbers of classes: cluster scope without a class, unknown namespaces, then the table's classes. */
const CLUSTER_CLASS = 0;
const UNKNOWN_CLASS = 1;
const FIRST_CLASS = 2;

const factsByRules = remember((rules: RouteTable["rules"]) =>
  remember((classes: RouteTable["classes"]) => createClassFacts(rules, classes)),
);

export function classFacts({ rules, classes }: Pick<RouteTable, "rules" | "classes">) {
  return factsByRules(rules)(classes);
}

function createClassFacts(rules: RouteTable["rules"], classes: RouteTable["classes"]) {
  const limits = limitsOf(rules);
  const isShardedTable = rules.some(({ kind }) => kind === "sharded");
  const fullLimits = limits.filter((at) => rules[at]?.resources.length === 0).length;
  // No limit excludes cluster-scoped objects without a class, so every limit counts as containing them.
  const membersOf = (number: number) => (number === CLUSTER_CLASS ? limits : classes[number - FIRST_CLASS]);
  const holders = onceEach((number) => {
    const members = number === UNKNOWN_CLASS ? undefined : membersOf(number);
    return members === undefined
      ? holdersOfUnknown(rules, isShardedTable)
      : holdersOf(rules, members, fullLimits, isShardedTable);
  });
  const signature = onceEach((number) => {
    const members = number === UNKNOWN_CLASS ? undefined : membersOf(number);
    return signatureOf(rules, limits, members, isShardedTable);
  });
  return { holders, signature };
}

function onceEach<T>(make: (number: number) => T): (number: number) => T {
  const made: (T | undefined)[] = [];
  return (number) => {
    const value = made[number] ?? make(number);
    made[number] = value;
    return value;
  };
}

const NOBODY: ReadonlySet<string> = new Set();

function holdersOf(
  rules: readonly RouteRule[],
  members: readonly number[],
  fullLimits: number,
  isShardedTable: boolean,
): ReadonlySet<string> {
  let contained = 0;
  const subsets = new Set<string>();
  let isForAll = false;
  for (const at of members) {
    const rule = rules[at];
    if (rule?.kind === "limit" && rule.resources.length === 0) contained++;
    if (rule?.kind !== "subset" || isForAll) continue;
    subsets.add(rule.subset);
    isForAll = rule.resources.length === 0;
  }
  if (contained < fullLimits) return NOBODY;
  return isForAll || isShardedTable ? subsets : subsets.add(DEFAULT_SUBSET);
}

// A resource to which no rule applies belongs to the default subset, even in an unknown namespace.
function holdersOfUnknown(rules: readonly RouteRule[], isShardedTable: boolean): ReadonlySet<string> {
  const everyResourceHasRule = isShardedTable || rules.some((rule) => rule.resources.length === 0);
  return new Set(everyResourceHasRule ? [] : [DEFAULT_SUBSET]);
}

function signatureOf(
  rules: readonly RouteRule[],
  limits: readonly number[],
  members: readonly number[] | undefined,
  isShardedTable: boolean,
): string {
  const inside = new Set(members);
  const parts = [isShardedTable ? "sharded" : "", members === undefined ? "unknown" : ""];
  for (const at of limits) {
    const rule = rules[at];
    if (rule !== undefined && !inside.has(at)) parts.push(contentOf(rule));
  }
  for (const at of members ?? rules.keys()) {
    const rule = rules[at];
    if (rule?.kind !== "subset") continue;
    parts.push(contentOf(rule));
    if (members !== undefined && rule.resources.length === 0) break;
  }
  // Without a rule, it does not matter whether the table knows the namespace.
  return parts.length > 2 ? parts.join() : (parts[0] ?? "");
}

/** What a rule on namespaces says, as a digest: it may list thousands of resources, in every class. */
export const contentOf = remember((rule: RouteRule): string => {
  const text = JSON.stringify([rule.kind, rule.kind === "subset" ? rule.subset : "", rule.resources]);
  return createHash("sha256").update(text).digest("base64");
});

/**
 * The subsets that may own, and so write, something in a namespace, or in CLUSTER_SCOPE, under this table.
 * What a pod retains does not count, nor do resources with fences of their own (resource-fences.ts).
 */
export function createHolders(table: RouteTable): (namespace: string) => ReadonlySet<string> {
  const { holders } = classFacts(table);
  return (namespace) => (isFencedIn(table, namespace) ? NOBODY : holders(classNumber(table, namespace)));
}

/** Equal for namespaces that the table treats equally, apart from fences. */
export function classNumber(table: Pick<RouteTable, "classOf">, namespace: string): number {
  const index = classIn(table, namespace);
  if (index !== undefined) return index + FIRST_CLASS;
  return isInClusterScope(namespace) ? CLUSTER_CLASS : UNKNOWN_CLASS;
}

/** Equal texts: every resource has the same owner, unless a table divides it by label or shares it. */
export function createSignatures(table: RouteTable): (namespace: string) => string {
  const { signature } = classFacts(table);
  return (namespace) => signature(classNumber(table, namespace));
}

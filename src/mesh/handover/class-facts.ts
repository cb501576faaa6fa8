// What the rules of a table say about each of its classes: which subsets hold something there, and the
// ownership as text. Pure. Invariant: each class is read once for all tables with the same rules and classes,
// since the tables of the subsets of one plan differ only in fences.
import { createHash } from "node:crypto";
import { remember, rememberNames } from "../../base/remember.ts";
import { isInClusterScope } from "../../kube/place.ts";
import { classIn, DEFAULT_SUBSET, isFencedIn, limitsOf, type RouteRule, type RouteTable } from "../ownership/table.ts";

/** Numbers of classes: cluster scope without a class, unknown namespaces, then the table's classes. */
const CLUSTER_CLASS = 0;
const UNKNOWN_CLASS = 1;
export const FIRST_CLASS = 2;

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
  const membersOf = (number: number) => {
    if (number === UNKNOWN_CLASS) return undefined;
    // No limit excludes cluster-scoped objects without a class, so every limit counts as containing them.
    return number === CLUSTER_CLASS ? limits : classes[number - FIRST_CLASS];
  };
  const holders = rememberNames((number: number) => {
    const members = membersOf(number);
    return members === undefined
      ? holdersOfUnknown(rules, isShardedTable)
      : holdersOf(rules, members, fullLimits, isShardedTable);
  });
  const signature = rememberNames((number: number) => signatureOf(rules, limits, membersOf(number), isShardedTable));
  return { holders, signature };
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

/** The content of a rule on namespaces as a digest, since a rule may list thousands of resources. */
export const contentOf = remember((rule: RouteRule): string => {
  const text = JSON.stringify([rule.kind, rule.kind === "subset" ? rule.subset : "", rule.resources]);
  return createHash("sha256").update(text).digest("base64");
});

/** The subsets that may own something in a place, apart from resources that move as a whole (resource-fences.ts). */
export function createHolders(table: RouteTable): (namespace: string) => ReadonlySet<string> {
  const { holders } = classFacts(table);
  return (namespace) => (isFencedIn(table, namespace) ? NOBODY : holders(classNumber(table, namespace)));
}

/** The same number for namespaces that the table treats alike, apart from fences. */
export function classNumber(table: Pick<RouteTable, "classOf">, namespace: string): number {
  const index = classIn(table, namespace);
  if (index !== undefined) return index + FIRST_CLASS;
  return isInClusterScope(namespace) ? CLUSTER_CLASS : UNKNOWN_CLASS;
}

/** With equal texts, each resource has the same owner, unless a table divides it by label or shares it. */
export function createSignatures(table: RouteTable): (namespace: string) => string {
  const { signature } = classFacts(table);
  return (namespace) => signature(classNumber(table, namespace));
}

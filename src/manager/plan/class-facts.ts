// What the rules of a table say about each of its classes: who holds something there, and the ownership as
// text. Pure; called by claims.ts and claim-comparison.ts. Invariant: a class costs as much as it has
// members, and each is read once for all tables with the same rules and classes: the tables of the subsets
// differ in fences only. Members are ascending and unique, as every table has them.
import { createHash } from "node:crypto";
import { DEFAULT_SUBSET, type RouteRule, type RouteTable } from "../../route/table.ts";

/**
 * The numbers of classes: the cluster scope without a class, namespaces that the table does not know, and
 * then the classes of the table.
 */
export const CLUSTER_CLASS = 0;
export const UNKNOWN_CLASS = 1;
export const FIRST_CLASS = 2;

export interface ClassFacts {
  /** The subsets that may own something in the class. */
  holders(number: number): ReadonlySet<string>;
  /** See createSignatures. */
  signature(number: number): string;
}

const known = new WeakMap<RouteTable["rules"], WeakMap<RouteTable["classes"], ClassFacts>>();

export function classFacts(table: Pick<RouteTable, "rules" | "classes">): ClassFacts {
  const byClasses = known.get(table.rules) ?? new WeakMap<RouteTable["classes"], ClassFacts>();
  known.set(table.rules, byClasses);
  const facts = byClasses.get(table.classes) ?? createClassFacts(table.rules, table.classes);
  byClasses.set(table.classes, facts);
  return facts;
}

function createClassFacts(rules: RouteTable["rules"], classes: RouteTable["classes"]): ClassFacts {
  const limits = rules.flatMap(({ kind }, at) => (kind === "limit" ? [at] : []));
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

// A resource to which no rule applies belongs to the default subset in every namespace, also in an unknown
// one.
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

const contents = new WeakMap<RouteRule, string>();

// A digest, since a rule may list thousands of resources and is in every class.
function contentOf(rule: RouteRule): string {
  const known = contents.get(rule);
  if (known !== undefined) return known;
  const text = JSON.stringify([rule.kind, rule.kind === "subset" ? rule.subset : "", rule.resources]);
  const digest = createHash("sha256").update(text).digest("base64");
  contents.set(rule, digest);
  return digest;
}

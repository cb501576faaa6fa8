// Who may hold what: the facts that decide whether a namespace may be granted. Pure. A claim is what a live pod may be
// enforcing now, as far as the manager can know; the manager keeps no memory of a handover beside these facts.
import { DEFAULT_SUBSET, type RouteTable } from "../../route/table.ts";

/** What one live pod may be enforcing. */
export type Claim =
  /** The pod enforces this table as this subset; if not `enforced`, it has been sent it and may enforce it any moment. */
  | {
      readonly kind: "table";
      readonly pod: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may hold everything: it runs without a proxy, as the default subset does (`subset` is ""), or its proxy has not
   * reported since this manager leads, and nobody knows as which subset it acts (undefined).
   */
  | { readonly kind: "everything"; readonly pod: string; readonly subset: string | undefined };

/**
 * The subsets that may own something in the namespace under this table. What is public or divided by labels does not count: it
 * has fences of its own, see resource-fences.ts.
 */
export function holdersOf(table: RouteTable, namespace: string): ReadonlySet<string> {
  if (table.fenced.has(namespace)) return new Set();
  const index = table.classOf.get(namespace);
  const members = index === undefined ? undefined : table.classes[index];
  const missesLimit = table.rules.some(
    (rule, at) => rule.kind === "limit" && rule.resources.length === 0 && members !== undefined && !members.includes(at),
  );
  if (missesLimit) return new Set();
  if (members === undefined) return holdersOfUnknown(table);
  const holders = new Set<string>();
  for (const at of members) {
    const rule = table.rules[at];
    if (rule?.kind !== "subset") continue;
    holders.add(rule.subset);
    if (rule.resources.length === 0) return holders;
  }
  return holders.add(DEFAULT_SUBSET);
}

// A resource to which no rule applies belongs to the default subset in every namespace, a yet unknown one too.
function holdersOfUnknown(table: RouteTable): ReadonlySet<string> {
  const everyResourceHasRule = table.rules.some((rule) => rule.resources.length === 0);
  return new Set(everyResourceHasRule ? [] : [DEFAULT_SUBSET]);
}

/**
 * What a table says about a namespace, as text: equal texts mean that every resource has the same owner there, but for those
 * that labels divide or that are public by one of the tables. Computed from the rules' content, so that tables of different specs compare.
 */
export function createSignatures(table: RouteTable): (namespace: string) => string {
  const describe = (members: readonly number[] | undefined) =>
    JSON.stringify(
      table.rules.flatMap((rule, at) => {
        if (rule.kind === "limit") return [["limit", rule.resources, members?.includes(at) ?? null]];
        if (rule.kind !== "subset") return [];
        return members === undefined || members.includes(at) ? [[rule.subset, rule.resources, members !== undefined]] : [];
      }),
    );
  const ofClass = table.classes.map(describe);
  const unknown = describe(undefined);
  return (namespace) => {
    const index = table.classOf.get(namespace);
    return index === undefined ? unknown : (ofClass[index] ?? unknown);
  };
}

// What each pod may write to: the facts that decide whether a namespace may be granted. Pure. A claim is what a pod may be enforcing now, as far
// as the manager can know, while the pod lives or its token is still accepted. The manager has no other memory of a handover.
import { DEFAULT_SUBSET, type RouteTable } from "../../route/table.ts";

/** What one pod may be enforcing. */
export type Claim = ClaimOfPod & {
  /** The pod's object is gone, and it receives nothing more. Its claims last for a grace time (facts/pod-history.ts). */
  readonly isGone?: true;
  /** See AppPod.unstarted; the status gives it as the reason of the wait. */
  readonly isUnstarted?: true;
};

type ClaimOfPod =
  /** The pod enforces this table as this subset; if not `enforced`, it has been sent it and may enforce it any moment. */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may hold everything: it runs without a proxy, as the default subset does (`subset` is ""), or its proxy has not
   * reported since this manager leads, and nobody knows as which subset it acts (undefined). The pod is "" for whoever was removed
   * before this manager knew the pods.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/**
 * The subsets that may own, and so write, something in a namespace under this table. What a pod retains read-only does not count, nor do
 * resources that are shared or partitioned by label: these have fences of their own (resource-fences.ts). Computed once a class, so that the
 * cost does not grow with the number of namespaces.
 */
export function createHolders(table: RouteTable): (namespace: string) => ReadonlySet<string> {
  const ofClass = table.classes.map((members) => holdersInClass(table, members));
  const unknown = holdersOfUnknown(table);
  return (namespace) => {
    if (table.fenced.has(namespace)) return NOBODY;
    const index = table.classOf.get(namespace);
    return index === undefined ? unknown : (ofClass[index] ?? unknown);
  };
}

const NOBODY: ReadonlySet<string> = new Set();

function holdersInClass(table: RouteTable, members: readonly number[]): ReadonlySet<string> {
  if (missesLimit(table, members)) return NOBODY;
  const holders = new Set<string>();
  for (const at of members) {
    const rule = table.rules[at];
    if (rule?.kind !== "subset") continue;
    holders.add(rule.subset);
    if (rule.resources.length === 0) return holders;
  }
  return holders.add(DEFAULT_SUBSET);
}

function missesLimit({ rules }: RouteTable, members: readonly number[]): boolean {
  return rules.some((rule, at) => rule.kind === "limit" && rule.resources.length === 0 && !members.includes(at));
}

// A resource to which no rule applies belongs to the default subset in every namespace, a yet unknown one too.
function holdersOfUnknown(table: RouteTable): ReadonlySet<string> {
  const everyResourceHasRule = table.rules.some((rule) => rule.resources.length === 0);
  return new Set(everyResourceHasRule ? [] : [DEFAULT_SUBSET]);
}

/**
 * What a table says about a namespace, as text: equal texts mean that every resource has the same owner there, but for those
 * that are partitioned by label or shared by one of the tables. Computed from the rules' content, so that tables of different specs
 * compare; a limit that contains the namespace says nothing, nor does what stands behind a rule for all resources.
 */
export function createSignatures(table: RouteTable): (namespace: string) => string {
  const describe = (members: readonly number[] | undefined) => {
    const limits = table.rules.flatMap((rule, at) =>
      rule.kind === "limit" && !members?.includes(at) ? [["limit", rule.resources, members !== undefined]] : [],
    );
    const owners = table.rules.flatMap((rule, at) =>
      rule.kind === "subset" && (members === undefined || members.includes(at)) ? [rule] : [],
    );
    const forAll = owners.findIndex(({ resources }) => resources.length === 0);
    const heard = members === undefined || forAll < 0 ? owners : owners.slice(0, forAll + 1);
    return JSON.stringify([...limits, ...heard.map(({ subset, resources }) => [subset, resources, members !== undefined])]);
  };
  const ofClass = table.classes.map(describe);
  const unknown = describe(undefined);
  return (namespace) => {
    const index = table.classOf.get(namespace);
    return index === undefined ? unknown : (ofClass[index] ?? unknown);
  };
}

// Claims: what each pod may be enforcing, and so may write to, as far as the manager knows. Pure. A claim lasts while the pod lives or the API
// server may accept its token. The manager has no other memory of a handover. plan-fences.ts and resource-fences.ts compare the claims.
import { isInClusterScope } from "../../kube/place.ts";
import { classIn, DEFAULT_SUBSET, isFencedIn, isSharded, membersIn, type RouteTable } from "../../route/table.ts";

/** What one pod may be enforcing. */
export type Claim = ClaimOfPod & {
  /** The pod's object is gone, and it receives nothing more. Its claims last for a grace time (facts/pod-history.ts). */
  readonly isGone?: true;
  /** See AppPod.unstarted. The status reports it as the reason of the wait. */
  readonly isUnstarted?: true;
};

type ClaimOfPod =
  /** The pod enforces this table as this subset. If not `enforced`, the table was sent and the pod may enforce it at any moment. */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may claim everything. Either it runs without a proxy and acts as the default subset (`subset` is ""). Or its proxy
   * has not reported to this leader, and its subset is not known (undefined). `podName` is "" for pods that were removed before
   * this manager knew the pods.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/**
 * The subsets that may own, and so write, something in a namespace, or in CLUSTER_SCOPE, under this table. What a pod retains read-only does not count.
 * Resources that are shared or partitioned by label do not count either: they have their own fences (resource-fences.ts). Computed once for
 * each class, so that the cost does not grow with the number of namespaces.
 */
export function createHolders(table: RouteTable): (namespace: string) => ReadonlySet<string> {
  const holders = byClass(table, (members) => (members === undefined ? holdersOfUnknown(table) : holdersInClass(table, members)));
  return (namespace) => (isFencedIn(table, namespace) ? NOBODY : holders(namespace));
}

/**
 * A number that is equal for namespaces that the table treats equally, apart from fences. At least 0: unknown namespaces and the cluster
 * scope without a class have numbers too.
 */
export function classNumber(table: RouteTable, namespace: string): number {
  return (classIn(table, namespace) ?? (isInClusterScope(namespace) ? -2 : -1)) + 2;
}

/** Computes once for each class. `members` is undefined for unknown namespaces. */
function byClass<T>(table: RouteTable, compute: (members: readonly number[] | undefined) => T): (namespace: string) => T {
  const known: (T | undefined)[] = [];
  return (namespace) => {
    const number = classNumber(table, namespace);
    const value = known[number] ?? compute(membersIn(table, namespace));
    known[number] = value;
    return value;
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
  return isSharded(table) ? holders : holders.add(DEFAULT_SUBSET);
}

function missesLimit({ rules }: RouteTable, members: readonly number[]): boolean {
  return rules.some((rule, at) => rule.kind === "limit" && rule.resources.length === 0 && !members.includes(at));
}

// A resource to which no rule applies belongs to the default subset in every namespace, also in an unknown one.
function holdersOfUnknown(table: RouteTable): ReadonlySet<string> {
  const everyResourceHasRule = isSharded(table) || table.rules.some((rule) => rule.resources.length === 0);
  return new Set(everyResourceHasRule ? [] : [DEFAULT_SUBSET]);
}

/**
 * The ownership in a namespace under a table, as text. Equal texts mean that every resource has the same owner there, except resources that
 * one of the tables partitions by label or shares. The text comes from the content of the rules, so tables of different specs can be compared.
 * It omits limits that contain the namespace, and all rules after a rule for all resources. It says whether the default subset has a share;
 * a resource that only one of two `sharded` rules names is shared in the other table.
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
    const share = isSharded(table) ? ["sharded"] : [];
    return JSON.stringify([
      ...share,
      ...limits,
      ...heard.map(({ subset, resources }) => [subset, resources, members !== undefined]),
    ]);
  };
  return byClass(table, describe);
}

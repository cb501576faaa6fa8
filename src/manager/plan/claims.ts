// Claims: what each pod may be enforcing, and so may write to, as far as the manager knows. Pure. A claim
// lasts while the pod lives or the API server may accept its token. The manager has no other memory of a
// handover. plan-fences.ts and resource-fences.ts compare the claims.
import { isInClusterScope } from "../../kube/place.ts";
import { classIn, isFencedIn, type RouteTable } from "../../route/table.ts";
import { CLUSTER_CLASS, classFacts, FIRST_CLASS, UNKNOWN_CLASS } from "./class-facts.ts";

/** What one pod may be enforcing. */
export type Claim = ClaimOfPod & {
  /**
   * The pod's object is gone, and it receives nothing more. Its claims last for a grace time
   * (facts/pod-history.ts).
   */
  readonly isGone?: true;
  /** See AppPod.unstarted. The status reports it as the reason of the wait. */
  readonly isUnstarted?: true;
};

type ClaimOfPod =
  /**
   * The pod enforces this table as this subset. If not `enforced`, the table was sent and the pod may enforce
   * it at any moment.
   */
  | {
      readonly kind: "table";
      readonly podName: string;
      readonly subset: string;
      readonly table: RouteTable;
      readonly enforced: boolean;
    }
  /**
   * The pod may claim everything. Either it runs without a proxy and acts as the default subset (`subset` is
   * ""). Or its proxy has not reported to this leader, and its subset is not known (undefined). `podName` is
   * "" for pods that were removed before this manager knew the pods.
   */
  | { readonly kind: "everything"; readonly podName: string; readonly subset: string | undefined };

/**
 * The subsets that may own, and so write, something in a namespace, or in CLUSTER_SCOPE, under this table.
 * What a pod retains read-only does not count. Resources that are shared or partitioned by label do not count
 * either: they have their own fences (resource-fences.ts). Computed once for each class, so that the cost
 * does not grow with the number of namespaces.
 */
export function createHolders(table: RouteTable): (namespace: string) => ReadonlySet<string> {
  const { holders } = classFacts(table);
  return (namespace) => (isFencedIn(table, namespace) ? NOBODY : holders(classNumber(table, namespace)));
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * A number that is equal for namespaces that the table treats equally, apart from fences. At least 0: unknown
 * namespaces and the cluster scope without a class have numbers too.
 */
export function classNumber(table: Pick<RouteTable, "classOf">, namespace: string): number {
  const index = classIn(table, namespace);
  if (index !== undefined) return index + FIRST_CLASS;
  return isInClusterScope(namespace) ? CLUSTER_CLASS : UNKNOWN_CLASS;
}

/**
 * The ownership in a namespace under a table, as text. Equal texts mean that every resource has the same
 * owner there, except resources that one of the tables partitions by label or shares. The text comes from the
 * content of the rules, so tables of different specs can be compared. It omits limits that contain the
 * namespace, and all rules after a rule for all resources. It says whether the default subset has a share; a
 * resource that only one of two `sharded` rules names is shared in the other table.
 */
export function createSignatures(table: RouteTable): (namespace: string) => string {
  const { signature } = classFacts(table);
  return (namespace) => signature(classNumber(table, namespace));
}

// What Converged says about other clusters: which pods may still write there what another subset owns. Pure. Invariant: nobody
// waits for a cluster that is down.
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";
import { isUnheard } from "../../mesh/handover/plan-fences.ts";
import { hasNothingYet } from "../../mesh/handover/resource-fences.ts";
import { CLUSTER_WAIT_WORDS } from "../apps/cluster-wait-words.ts";
import { plannedClusters } from "../apps/planned-clusters.ts";
import { countText, type Verdict } from "./facts.ts";

/** The verdict, or the pod of which the manager has to hear. Undefined: no cluster is waited for. */
export function clusterMoves(
  plan: AppPlan,
): Verdict<"Moving" | "PodsWithoutProxy"> | { readonly unheard: ClusterWait } | undefined {
  const { clusterWaits = [] } = plan;
  const heard = clusterWaits.filter((wait) => !isUnheard(wait));
  // A pod that the mesh does not limit waits for a person, and comes before pods that move.
  const first = heard.find(isUnlimited) ?? heard[0];
  if (first === undefined) {
    // After a failover, pods of which nothing is known are of no interest where nothing moves.
    const unheard = clusterWaits.find(({ clusters }) => clusters.some((name) => isFenced(plan, name)));
    return unheard && { unheard };
  }
  const { cause, clusters, podName } = first;
  const pods = new Set(heard.map((wait) => wait.podName)).size - 1;
  const more = pods === 0 ? "" : `, and ${countText(pods, "more pod")}`;
  const others = clusters.length === 1 ? "" : ` and ${clusters.length - 1} more`;
  const message = `cluster ${clusters[0]}${others}: pod ${podName} ${CLUSTER_WAIT_WORDS[cause]}${more}`;
  return { status: "False", reason: isUnlimited(first) ? "PodsWithoutProxy" : "Moving", message };
}

function isUnlimited({ cause }: ClusterWait): boolean {
  return cause === "not-enforced" || cause === "no-proxy";
}

/** Names the clusters that are closed to every pod. Empty: there are none. */
export function closedClustersText(plan: AppPlan): string {
  const names = plannedClusters(plan).flatMap(({ name, upstream }) =>
    upstream === undefined || plan.clusterTables?.has(name) ? [] : [name],
  );
  const [first] = names;
  if (first === undefined) return "";
  const others = names.length === 1 ? "" : ` and ${names.length - 1} more`;
  return `; the namespaces of cluster ${first}${others} are not known, so no pod can write there: see Ready of the MeshCluster`;
}

function isFenced({ rules }: AppPlan, cluster: string): boolean {
  return [...rules].some(([subset, { clusters = [], clusterTables }]) => {
    const table = clusterTables?.get(cluster);
    if (table !== undefined) return table.fenced.size > 0 || hasNothingYet(table);
    return clusters.some(({ name, owner, upstream, isFenced: isClosed }) => {
      return name === cluster && owner === subset && upstream === undefined && isClosed === true;
    });
  });
}

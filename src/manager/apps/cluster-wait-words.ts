// What a pod does for which a cluster waits, in the words of statuses. Pure.
import type { ClusterWait } from "../../mesh/handover/plan-clusters.ts";

/** After the name of the pod. */
export const CLUSTER_WAIT_WORDS: Readonly<Record<ClusterWait["cause"], string>> = {
  holds: "has not given up the cluster yet",
  unreported: "has not reported to this manager yet",
  unstarted: "does not start, so its proxy does not report",
  "no-proxy": "has no proxy: restart it",
  "pod-gone": "was removed, and its last requests may still run",
  "just-listed": "may have been removed just before this manager became the leader",
  "not-enforced":
    "has a proxy that does not see requests to other servers: set the annotation ctrlmesh.kruise.io/egress and restart it",
};

// What the owners of clusters depend on in the status of a MeshCluster. Pure. The status is the memory of the manager: it names the
// last owners, so each replica, and a new leader, computes the same next ones.
import { z } from "zod";
import { subsetOfDisplayName } from "../../mesh/ownership/words.ts";
import type { ClusterFacts } from "./compile/route-spec.ts";

/** Another version may have written it. */
const READABLE = z.object({
  owners: z.array(z.object({ app: z.string(), subset: z.string() })).catch([]),
  conditions: z.array(z.object({ type: z.string(), status: z.string(), lastTransitionTime: z.string().optional() })).catch([]),
});

export function clusterStatusFacts(status: unknown): Pick<ClusterFacts, "owners" | "isUnreachable" | "reachableSince"> {
  const { owners, conditions } = READABLE.safeParse(status).data ?? { owners: [], conditions: [] };
  const reachable = conditions.find(({ type }) => type === "Reachable");
  return {
    ...(owners.length > 0 && { owners: new Map(owners.map(({ app, subset }) => [app, subsetOfDisplayName(subset)])) }),
    ...(reachable?.status === "False" && { isUnreachable: true as const }),
    ...(reachable?.status === "True" && { reachableSince: reachable.lastTransitionTime }),
  };
}

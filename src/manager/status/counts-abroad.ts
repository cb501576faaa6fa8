// How many namespaces of other clusters each subset owns. Pure. Invariant: the cost grows with the classes of the tables, not with the namespaces.
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import { DEFAULT_SUBSET } from "../../mesh/ownership/table.ts";
import { countByHolder } from "../apps/count-by-holder.ts";
import { plannedClusters } from "../apps/planned-clusters.ts";

export interface CountsAbroad {
  readonly owned: ReadonlyMap<string, number>;
  /** The number of clusters with an owner of which neither the manager nor a pod knows the namespaces. */
  readonly unknown: number;
}

export function countsAbroad(plan: Pick<AppPlan, "rules" | "clusterTables">): CountsAbroad {
  const owned = new Map<string, number>();
  for (const table of plan.clusterTables?.values() ?? []) {
    for (const [subset, count] of countByHolder(table)) {
      if (subset !== undefined) owned.set(subset, (owned.get(subset) ?? 0) + count);
    }
  }
  const hasOwner = plannedClusters(plan).filter(({ upstream, owner }) => upstream !== undefined && owner !== DEFAULT_SUBSET);
  return { owned, unknown: hasOwner.filter(({ name }) => plan.clusterTables?.has(name) !== true).length };
}

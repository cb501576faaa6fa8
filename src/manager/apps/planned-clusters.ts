// The clusters of an app as the pods of their owners have them. Pure.
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { OwnershipPlan } from "./published-plans.ts";

/** Each cluster once; one whose namespaces are divided too, with the default subset. Only the routes of the owner's pods show whether the owner still waits. */
export function plannedClusters({ rules }: Pick<OwnershipPlan, "rules">): readonly ClusterRoute[] {
  return [...rules].flatMap(([subset, { clusters = [] }]) => clusters.filter(({ owner }) => owner === subset));
}

/** Those that one subset owns. */
export function wholeClusters(plan: Pick<OwnershipPlan, "rules">): readonly ClusterRoute[] {
  return plannedClusters(plan).filter(({ upstream }) => upstream === undefined);
}

// PlacementDecision of SIG Multicluster (KEP-5313): which clusters a program has chosen, as objects that other programs read.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { INVENTORY_GROUP } from "./cluster-profile.ts";

export interface PlacementDecision extends KubeObject {
  readonly schedulerName?: string;
  /** At most MAX_DECISIONS. */
  readonly decisions: readonly ClusterDecision[];
}

export interface ClusterDecision {
  /** Without a namespace, it is in the namespace of the PlacementDecision. */
  readonly clusterProfileRef: { readonly name: string; readonly namespace?: string };
}

/** The version of cluster-inventory-api v0.1.0. */
export const PLACEMENT_VERSION = "v1alpha1";

export const PLACEMENT_DECISIONS: Resource<PlacementDecision> = {
  group: INVENTORY_GROUP,
  version: PLACEMENT_VERSION,
  resource: "placementdecisions",
  kind: "PlacementDecision",
  namespaced: true,
};

export const MAX_DECISIONS = 100;
/** The same on all slices of one decision. */
export const DECISION_KEY_LABEL = "multicluster.x-k8s.io/decision-key";
/** The place of a slice among those of its decision, from "0". */
export const DECISION_INDEX_LABEL = "multicluster.x-k8s.io/decision-index";
export const SCHEDULER_NAME = "ctrlmesh-manager";

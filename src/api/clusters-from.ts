// `clustersFrom` of a rule: clusters that another program chooses.
import { z } from "zod";
import { labelValueSchema } from "./names.ts";

export const clustersFromSchema = z.strictObject({
  placementDecision: labelValueSchema
    .min(1, "must not be empty")
    .describe(
      "Value of the label multicluster.x-k8s.io/decision-key of PlacementDecisions in the namespace of this object. All objects with the value are slices of one decision. They name clusters by their ClusterProfiles, which have the names of the MeshClusters. Those that the manager has written itself are not read.",
    ),
});

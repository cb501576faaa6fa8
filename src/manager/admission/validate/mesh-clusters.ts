// The check of MeshClusters in the validating webhook: their own fields, without a look at other objects. Their status says what is wrong
// beside others.
import { type MeshCluster, validateMeshCluster } from "../../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../../api/resources.ts";
import { checkEdit } from "../../apps/check-edit.ts";
import type { CheckedKind } from "./validate-webhook.ts";

export const checkedMeshClusters: CheckedKind = {
  resource: MESH_CLUSTERS,
  judgeEdit(before, after) {
    const edit = checkEdit(before, after, validateMeshCluster, []);
    return "problems" in edit ? edit : { problems: [], warnings: [...notes(edit.value)] };
  },
};

function* notes({ spec: { interception, discoveredBy = [] } }: MeshCluster): Iterable<string> {
  if (interception === "None" && discoveredBy.length === 0)
    yield "spec.discoveredBy is empty, so with interception: None every pod finds and reaches this cluster";
}

// The check of MeshClusters in the validating webhook: their own fields, without a look at other objects. Their status says what is wrong
// beside others.
import { type MeshCluster, validateMeshCluster } from "../../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../../api/resources.ts";
import { CLUSTERS_PATH } from "../../../mesh/ownership/clusters.ts";
import { checkEdit } from "../../apps/check-edit.ts";
import type { CheckedKind } from "./validate-webhook.ts";

export const checkedMeshClusters: CheckedKind = {
  resource: MESH_CLUSTERS,
  judgeEdit(before, after) {
    const edit = checkEdit(before, after, validateMeshCluster, []);
    return "problems" in edit ? edit : { problems: [], warnings: [...notes(edit.value)] };
  },
};

/** The name of the API server at home for every pod there. */
const HOME = /^kubernetes\.default(\.svc(\..*)?)?$/;

function* notes({ spec: { servers, interception, discoveredBy = [] } }: MeshCluster): Iterable<string> {
  for (const [at, server] of servers.entries()) {
    const { hostname = "", pathname = "" } = URL.parse(server) ?? {};
    if (pathname.startsWith(CLUSTERS_PATH)) yield `spec.servers[${at}] leads to the sidecar: write the URL of the cluster itself`;
    if (HOME.test(hostname))
      yield `spec.servers[${at}] is the home cluster, which the app's other rules divide: its namespaces could have two writers`;
  }
  if (interception === "None" && discoveredBy.length === 0)
    yield "spec.discoveredBy is empty, so with interception: None every pod finds and reaches this cluster";
}

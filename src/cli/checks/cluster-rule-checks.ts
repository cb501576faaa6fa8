// Whether each rule about other clusters matches one: a misspelt name or label gives nothing to a subset, and no status says so.
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { validateShardingConfig } from "../../api/sharding-config.ts";
import { validateVirtualApp } from "../../api/virtual-app.ts";
import { type NamedClusters, unmatchedRules, unmatchedSelector } from "../../manager/virtual-app/unmatched-clusters.ts";
import type { AppObject } from "../apps/apps.ts";
import { listMeshClusters } from "../apps/cluster-states.ts";
import { type Check, foundWarning } from "./check.ts";

const DOCS = "tasks/divide-clusters.md#divide-them";

export const CLUSTER_RULES: Check = {
  name: "cluster-rules",
  holds: "each name and selector in rules about clusters matches a MeshCluster",
  async run({ cluster, apps }) {
    // An app without rules about clusters needs no right to list MeshClusters.
    const dividing = (await apps()).filter(({ objects }) => JSON.stringify(objects).includes('"cluster'));
    const found = dividing.map(async ({ kind, namespace, name, objects }) => {
      const listed = await listMeshClusters(cluster, namespace);
      const clusters = listed.map(({ metadata }) => ({ name: metadata.name ?? "", labels: metadata.labels ?? {} }));
      const about = {
        object: `${kind.resource.kind} ${namespace}/${name}`,
        next: `kubectl get ${MESH_CLUSTERS.resource}.${MESH_CLUSTERS.group} -n ${namespace} --show-labels`,
      };
      return objects.flatMap((object) => unmatchedOf(object, clusters)).map((text) => foundWarning(text, DOCS, about));
    });
    return (await Promise.all(found)).flat();
  },
};

function unmatchedOf(object: AppObject, clusters: NamedClusters): string[] {
  const app = validateVirtualApp(object);
  if (app.ok) return unmatchedRules(app.value.spec, clusters);
  const config = validateShardingConfig(object);
  return unmatchedSelector("root.clusterSelector", config.ok ? config.value.spec.root?.clusterSelector : undefined, clusters);
}

// The fifth act: an operator works on other clusters. All its pods have the same credentials, and each cluster, or each namespace of it, has
// one writer.
import type { MeshClusterStatus } from "../../../src/api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../../src/api/resources.ts";
import type { Act } from "../act.ts";
import { readApp } from "../divide/app.ts";
import type { World } from "../world.ts";
import { divideNamespaces, startThird } from "./inside.ts";
import type { OtherCluster } from "./other-clusters.ts";
import { addClusters, moveCluster, openClusters, sumUp, writeEverywhere } from "./steps.ts";
import { type Facts, factLines } from "./view.ts";

const APP_FILE = "examples/demo/clusters/virtualapp.yaml";

export function readClustersAct(): Act<Facts> {
  const { setting, subsetOf } = readApp(APP_FILE);
  const pod = (name: string, version: string) => {
    const labels = { component: setting.appName, version };
    return { name, labels, subset: subsetOf(labels), hasEgress: true };
  };
  const others = openClusters();
  let third: Promise<OtherCluster> | undefined;
  return {
    setting,
    opening: "Starting an API server (localkube), ctrlmesh-manager, and two pods of an operator",
    roles:
      "No cluster and no containers: the demo plays the kubelet. It runs each pod as two processes, the operator and its proxy.",
    pods: [pod("foo-operator-0", "v1"), pod("foo-operator-v2-0", "v2")],
    introduce: (pods) => [`The operator: ${pods.map(({ name }) => name).join(", ")}`],
    look: lookAt,
    draw: factLines,
    steps: [
      (stage) => addClusters(stage, others),
      (stage) => writeEverywhere(stage, others),
      async (stage) => {
        third = startThird(stage);
        await Promise.all([third, moveCluster(stage, others)]);
      },
      (stage) => divideNamespaces(stage, others, third ?? startThird(stage)),
    ],
    sumUp: (stage) => sumUp(stage, others),
    resource: "meshclusters",
  };
}

async function lookAt({ client, setting }: World): Promise<Facts> {
  const { items } = await client.list(MESH_CLUSTERS, { namespace: setting.namespace });
  const rows = items.map(({ metadata, status }) => {
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    return {
      name: metadata.name ?? "",
      region: metadata.labels?.region ?? "",
      owner: status?.owners?.[0]?.subset ?? ownersInside(status),
      ready: ready?.status ?? "Unknown",
      message: ready?.message ?? "",
    };
  });
  return { clusters: rows };
}

/** How many namespaces of the cluster each subset owns. */
function ownersInside(status: MeshClusterStatus | undefined): string {
  const owned = status?.namespaces?.[0]?.owned ?? [];
  return owned.map(({ subset, count }) => `${subset} ${count}`).join(", ");
}

// MeshClusters for tests.
import type { MeshCluster } from "../../src/api/mesh-cluster.ts";
import type { FakeObject } from "./cli.ts";

/** In the namespace ops, with the server https://NAME.example:6443 and the label region. */
export function meshClusterOf(name: string, region: string, spec: object = {}) {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "MeshCluster",
    metadata: { name, namespace: "ops", labels: { region }, creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: { servers: [`https://${name}.example:6443`], ...spec },
  } as const satisfies FakeObject & { spec: object };
}

/** The status of a cluster of the app `shop` that moves. @param since RFC 3339 */
export function movingCluster(subset: string, pod: string, since: string) {
  const message = `shop: pod ${pod} has not given up the cluster yet; subset "${subset}" waits for the cluster`;
  const common = { lastTransitionTime: since, observedGeneration: 1 };
  const conditions = [
    { type: "Ready", status: "False", reason: "Moving", message, ...common },
    { type: "Identified", status: "True", reason: "Unique", message: "no older one", ...common },
    { type: "Enforced", status: "False", reason: "Moving", message, ...common },
  ];
  return { owners: [{ app: "shop", subset }], waitingOn: [pod], conditions };
}

/** In the namespace fleet, also with a spec that the schema does not allow. */
export function fleetCluster(name: string, spec: object, metadata: object = {}): MeshCluster {
  const common = { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster" } as const;
  return {
    ...common,
    metadata: { namespace: "fleet", name, creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
    spec,
  } as MeshCluster;
}

// MeshClusters for tests of the command line.
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

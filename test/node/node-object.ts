// The Node object and its heartbeat Lease, as a kubelet maintains them. The node lifecycle controller of the tests' control plane
// is off. So no node is marked unreachable, and this file removes the taint of a new node.
import type { Resource } from "../../src/kube/client/resource.ts";
import { LEASES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { NODE_ADDRESS } from "./network.ts";

const NODES: Resource<KubeObject> = { group: "", version: "v1", resource: "nodes", kind: "Node", namespaced: false };
const LEASE_NAMESPACE = "kube-node-lease";
const HEARTBEAT_MS = 10_000;

/** Reports the node as ready for pods until the signal. */
export async function registerNode(client: KubeClient, name: string, kubeletPort: number, signal: AbortSignal): Promise<void> {
  const labels = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" };
  await client.create(NODES, { metadata: { name, labels } }).catch((error: unknown) => {
    if (!isStatus(error, "AlreadyExists")) throw error;
  });
  await client.patch(NODES, { name }, { type: "merge", body: { status: nodeStatus(kubeletPort) } }, { subresource: "status" });
  await client.patch(NODES, { name }, { type: "merge", body: { spec: { taints: null } } });
  await beat(client, name);
  const timer = setInterval(() => void beat(client, name).catch(() => {}), HEARTBEAT_MS); // the API server may be down
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

function nodeStatus(kubeletPort: number): object {
  const now = new Date().toISOString();
  const resources = { cpu: "64", memory: "64Gi", pods: "250", "ephemeral-storage": "64Gi" };
  const healthy = ["MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
    type,
    status: "False",
    reason: "TestNode",
  }));
  const conditions = [...healthy, { type: "Ready", status: "True", reason: "KubeletReady" }];
  return {
    capacity: resources,
    allocatable: resources,
    addresses: [{ type: "InternalIP", address: NODE_ADDRESS }],
    conditions: conditions.map((each) => ({ ...each, lastHeartbeatTime: now, lastTransitionTime: now })),
    ...(kubeletPort === 0 ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } } }),
    nodeInfo: {
      machineID: "",
      systemUUID: "",
      bootID: "",
      kernelVersion: "test",
      osImage: "test",
      operatingSystem: "linux",
      architecture: "amd64",
      containerRuntimeVersion: "test://1",
      kubeletVersion: "v1.36.0",
      kubeProxyVersion: "",
    },
  };
}

async function beat(client: KubeClient, name: string): Promise<void> {
  const renewTime = new Date().toISOString().replace("Z", "000Z");
  const spec = { holderIdentity: name, leaseDurationSeconds: 40, renewTime };
  const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace: LEASE_NAMESPACE }, spec };
  await client.patch(LEASES, { namespace: LEASE_NAMESPACE, name }, { type: "apply", body, fieldManager: "kubelet" });
}

// A node with test/operators/fake-kubelet as its kubelet, and pods on it, so that kube-apiserver has a peer for exec, attach,
// port-forward and logs. The commands "in" such a pod are processes of this machine.
import { Agent, request } from "undici";
import { type Child, startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";
import { kubectl } from "./kubectl.ts";

/** The kubelet's open streams, and the bytes of logs that it has written. */
export interface KubeletStats {
  readonly exec: number;
  readonly attach: number;
  readonly portforward: number;
  readonly logs: number;
  readonly logBytes: number;
}

export interface FakeKubelet {
  readonly port: number;
  stats(): Promise<KubeletStats>;
  /** A running pod with one container, "main". */
  createPod(namespace: string, name: string): Promise<void>;
  stop(): Promise<void>;
}

const NODE = "fake-node";

/** Starts the kubelet and creates its node. */
export async function startFakeKubelet(kubeconfig: string): Promise<FakeKubelet> {
  const child: Child = await startChild({
    name: "fake-kubelet",
    command: await goProgram("test/operators/fake-kubelet"),
    args: [],
  });
  const port = Number(child.ready.port);
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } }); // its certificate is self-signed, like a new kubelet's
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  const setStatus = (kind: string, name: string, value: object, ...more: string[]) =>
    kubectl(kubeconfig, [
      "patch",
      kind,
      name,
      ...more,
      "--subresource=status",
      "--type=merge",
      "-p",
      JSON.stringify({ status: value }),
    ]);
  await kubectl(kubeconfig, ["create", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: NODE } }));
  await setStatus("node", NODE, status);
  return {
    port,
    async stats() {
      const { body } = await request(`https://127.0.0.1:${port}/stats`, { dispatcher });
      return (await body.json()) as KubeletStats;
    },
    async createPod(namespace, name) {
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { namespace, name },
        spec: { nodeName: NODE, containers: [{ name: "main", image: "example.invalid/main", stdin: true }] },
      };
      await kubectl(kubeconfig, ["create", "-f", "-"], JSON.stringify(pod));
      const containerStatuses = [
        { name: "main", ready: true, restartCount: 0, image: "x", imageID: "x", state: { running: {} } },
      ];
      await setStatus("pod", name, { phase: "Running", containerStatuses }, "-n", namespace);
    },
    async stop() {
      await dispatcher.destroy();
      await child.stop(2_000);
    },
  };
}

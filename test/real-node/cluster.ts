// The real nodes as a cluster for tests: what test/node offers, so that helpers of the other tests run on either. The test process is in the first node's
// network, so it reaches pods and Services by their own addresses.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestCluster } from "../node/cluster.ts";
import { kubectl, tryKubectl } from "../support/kubectl.ts";
import type { RealNodes } from "./nodes.ts";

interface RunningPod {
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly podIP?: string;
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly containerID?: string;
  readonly restartCount: number;
}

export function clusterOf({ kube, nodes }: RealNodes): TestCluster {
  const { kubeconfig } = kube;
  const podOf = async (namespace: string, name: string): Promise<RunningPod> =>
    JSON.parse(await kubectl(kubeconfig, ["get", "pod", name, "-n", namespace, "-o", "json"]));
  const podIP = async (namespace: string, name: string) => {
    const { status } = await podOf(namespace, name);
    if (status.podIP === undefined) throw new Error(`pod ${namespace}/${name} has no address`);
    return status.podIP;
  };
  const cluster: TestCluster = {
    kube,
    nodeNames: nodes.map(({ name }) => name),
    nodePid: process.pid,
    nodeAddress: nodes[0].address,
    // All images are imported at the start.
    addImages: async () => {},
    logs: (namespace, pod, container) =>
      nodes.map(({ folder }) => logsOf(join(folder, "pods"), namespace, pod, container)).join("\n"),
    forward: async (namespace, pod, port) => `${await podIP(namespace, pod)}:${port}`,
    forwardTo: async (host, port) => `${host}:${port}`,
    podIP,
    async processesOf(namespace, name) {
      const { spec, status } = await podOf(namespace, name);
      const node = nodes.find((each) => each.name === spec.nodeName);
      const pids = pidsById((await node?.ctr("tasks", "ls")) ?? "");
      const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
      return all.map(({ name, containerID = "", restartCount }) => {
        return { name, pid: pids.get(containerID.replace("containerd://", "")) ?? 0, restartCount, logFile: "" };
      });
    },
    async kill(namespace, name, container, signal = "SIGKILL") {
      const found = (await cluster.processesOf(namespace, name)).find((each) => each.name === container);
      if (found === undefined || found.pid === 0) throw new Error(`container ${container} of ${namespace}/${name} does not run`);
      process.kill(found.pid, signal);
    },
    async exec(namespace, pod, container, argv) {
      const { code, stdout, stderr } = await tryKubectl(kubeconfig, [
        "exec",
        pod,
        "-n",
        namespace,
        "-c",
        container,
        "--",
        ...argv,
      ]);
      return { code, output: stdout + stderr };
    },
    stop: async () => {},
  };
  return cluster;
}

/** The columns of `ctr tasks ls`: id, pid, state. */
function pidsById(table: string): Map<string, number> {
  const rows = table.split("\n").slice(1);
  return new Map(rows.map((row) => row.split(/\s+/)).map(([id = "", pid]) => [id, Number(pid)]));
}

/** The output of a container in all its runs that the kubelet keeps uncompressed, without its times. */
function logsOf(folder: string, namespace: string, pod: string, container: string): string {
  const pods = (existsSync(folder) ? readdirSync(folder) : []).filter((name) => name.startsWith(`${namespace}_${pod}_`));
  return (
    pods
      .map((name) => join(folder, name, container))
      .flatMap((path) => readdirSync(path).map((file) => join(path, file)))
      // The kubelet compresses all rotated files but the newest.
      .filter((file) => !file.endsWith(".gz"))
      .flatMap((file) => readFileSync(file, "utf8").split("\n"))
      .map((line) => line.replace(/^\S+ std(?:out|err) [FP] /, ""))
      .join("\n")
  );
}

// A cluster of real nodes: the control plane of the tests, two nodes, and CoreDNS.
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { addHost, firstHost } from "./hosts.ts";
import { buildImages } from "./images.ts";
import { createNode, type RealNode } from "./node.ts";
import { buildNodePrograms, type NodePrograms } from "./programs.ts";
import { LOST_SECONDS } from "./settings.ts";

const COREDNS = fileURLToPath(new URL("coredns.yaml", import.meta.url));

export interface RealNodes {
  readonly kube: Kube;
  /** The files of the run. */
  readonly folder: string;
  /** A folder with helm, for PATH. */
  readonly tools: string;
  /** The tests and the control plane are on the host of the first one. */
  readonly nodes: readonly [RealNode, RealNode];
  /** Starts the second node at the first call, and resolves when it is ready. No pod starts there before `kubectl uncordon`. */
  startSecondNode(): Promise<void>;
}

/** @param folder in which all files of the run are */
export async function startRealNodes(folder: string): Promise<RealNodes> {
  const programs = await buildNodePrograms();
  const images = await buildImages(programs);
  const host1 = await firstHost(folder);
  const host2 = await addHost(folder, host1, 2);
  const kubeDir = join(folder, "kube");
  const certificate = (name: string) => join(kubeDir, "certs", name);
  const kube = await startKube({
    controllerManager: true,
    nodeControllers: true,
    scheduler: true,
    tokenCacheMs: 10_000,
    dir: kubeDir,
    apiServerArgs: [
      "--bind-address=0.0.0.0",
      `--advertise-address=${host1.address}`,
      "--endpoint-reconciler-type=lease",
      "--enable-admission-plugins=NodeRestriction",
      "--kubelet-preferred-address-types=InternalIP",
      `--kubelet-client-certificate=${certificate("admin.crt")}`,
      `--kubelet-client-key=${certificate("admin.key")}`,
    ],
    controllerManagerArgs: ["--node-monitor-period=1s", `--node-monitor-grace-period=${LOST_SECONDS}s`],
  });
  const { kubeconfig, caFile } = kube;
  const tools = await linkPrograms(folder, programs);
  const api = { kubeconfig, caFile, server: `https://${host1.address}:${new URL(kube.server).port}` };
  const first = createNode(host1, programs, images, api);
  const second = createNode(host2, programs, images, api);
  await first.startServices();
  await kubectl(kubeconfig, ["apply", "-f", COREDNS]);
  await kubectl(kubeconfig, ["rollout", "status", "deployment/coredns", "-n", "kube-system", "--timeout=60s"]);
  const startSecond = async () => {
    // Its Node exists before its kubelet, so that no pod starts there meanwhile.
    const node = { apiVersion: "v1", kind: "Node", metadata: { name: second.name }, spec: { unschedulable: true } };
    await kubectl(kubeconfig, ["create", "-f", "-"], JSON.stringify(node));
    await second.startServices();
  };
  let secondReady: Promise<void> | undefined;
  return {
    kube,
    folder,
    tools,
    nodes: [first, second],
    startSecondNode() {
      secondReady ??= startSecond();
      return secondReady;
    },
  };
}

/** containerd finds its shim by PATH, and a reader's commands find helm. */
async function linkPrograms(folder: string, programs: NodePrograms): Promise<string> {
  const tools = join(folder, "bin");
  mkdirSync(tools);
  symlinkSync(programs["containerd-shim-runc-v2"], join(tools, "containerd-shim-runc-v2"));
  symlinkSync(await goProgram("test/tools/helm"), join(tools, "helm"));
  process.env.PATH = `${tools}:${dirname(process.execPath)}:${process.env.PATH ?? ""}`;
  return tools;
}

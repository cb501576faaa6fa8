// A Kubernetes node: the real control plane, containerd, kubelet, kube-proxy and CoreDNS, in the namespaces that enter.ts made. All run until the
// namespaces end, so nothing has to be stopped.
import { execFile } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { NODE_ADDRESS, NODE_NAME } from "./enter.ts";
import { buildImages, FURTHER_NAMES } from "./images.ts";
import { buildNodePrograms, type NodePrograms } from "./programs.ts";
import { createServices, type NodeServices } from "./services.ts";

const COREDNS = fileURLToPath(new URL("coredns.yaml", import.meta.url));
const READY_MS = 120_000;

export interface RealNode {
  readonly kube: Kube;
  readonly services: NodeServices;
  /** The node's files. */
  readonly folder: string;
  /** A folder with helm, for PATH. */
  readonly tools: string;
  /** Runs containerd's command line in the kubelet's namespace. */
  ctr(...args: string[]): Promise<string>;
  /** Starts the services that do not run, and waits until containerd answers and the node is ready. */
  startServices(): Promise<void>;
}

/** @param folder in which all files of the node are */
export async function startRealNode(folder: string): Promise<RealNode> {
  const programs = await buildNodePrograms();
  const archives = [...(await buildImages(programs))];
  const kubeDir = join(folder, "kube");
  const certificate = (name: string) => join(kubeDir, "certs", name);
  const kube = await startKube({
    controllerManager: true,
    scheduler: true,
    dir: kubeDir,
    apiServerArgs: [
      "--bind-address=0.0.0.0",
      `--advertise-address=${NODE_ADDRESS}`,
      "--endpoint-reconciler-type=lease",
      "--enable-admission-plugins=NodeRestriction",
      "--kubelet-preferred-address-types=InternalIP",
      `--kubelet-client-certificate=${certificate("admin.crt")}`,
      `--kubelet-client-key=${certificate("admin.key")}`,
    ],
  });
  const tools = await linkPrograms(folder, programs);
  const services = createServices(folder, programs, kube.kubeconfig, kube.caFile);
  const node: RealNode = {
    kube,
    services,
    folder,
    tools,
    ctr: async (...args) => {
      const options = { maxBuffer: 64 * 1024 * 1024, timeout: 120_000 };
      return (await promisify(execFile)(programs.ctr, ["--namespace", "k8s.io", ...args], options)).stdout;
    },
    async startServices() {
      services.start("containerd");
      await eventually(() => node.ctr("version"), { withinMs: READY_MS, everyMs: 100 });
      if (archives.length > 0) await importImages(node, archives.splice(0));
      services.start("kubelet");
      services.start("kube-proxy");
      const args = ["wait", `node/${NODE_NAME}`, "--for=condition=Ready", `--timeout=${READY_MS / 1000}s`];
      await eventually(() => kubectl(kube.kubeconfig, args), READY_MS).catch((cause: unknown) => {
        throw new Error(`the node is not ready; the kubelet's log ends with\n${services.log("kubelet")}`, { cause });
      });
    },
  };
  await node.startServices();
  // The control plane of the tests runs no controller that does this.
  await kubectl(kube.kubeconfig, ["taint", "nodes", NODE_NAME, "node.kubernetes.io/not-ready-"]);
  await kubectl(kube.kubeconfig, ["apply", "-f", COREDNS]);
  await kubectl(kube.kubeconfig, ["rollout", "status", "deployment/coredns", "-n", "kube-system", "--timeout=60s"]);
  return node;
}

async function importImages(node: RealNode, archives: readonly string[]): Promise<void> {
  for (const archive of archives) await node.ctr("images", "import", archive);
  for (const { image, name } of FURTHER_NAMES) await node.ctr("images", "tag", image, name);
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

// A cluster for tests: the real control plane (test/support/kube.ts) and nodes that really run their pods. Both are in network
// namespaces of their own; the test process reaches the API server and the pods by forwarded ports of 127.0.0.1. Needs root,
// iproute2, iptables and util-linux. Leaves nothing behind, also after kill -9.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Kube, type KubeOptions, startKube } from "../support/kube.ts";
import { startAgent } from "./agent-process.ts";
import type { ContainerInfo, ExecAnswer } from "./agent-protocol.ts";
import { NODE_ADDRESS, SERVICE_RANGE } from "./network.ts";
import { whyNoTestNode } from "./prerequisites.ts";
import type { TestImages } from "./test-image.ts";

export interface TestClusterOptions extends Pick<KubeOptions, "apiServerArgs" | "featureGates"> {
  readonly images?: TestImages;
  /** The number of nodes, node-1 and so on; the default is 1. They share an address and one agent. */
  readonly nodes?: number;
  /** Pause before a container's first restart, doubled each time; default 200 ms. */
  readonly backoffMs?: number;
  /** Default 5,000 ms. */
  readonly maxBackoffMs?: number;
}

export interface TestCluster {
  readonly kube: Kube;
  readonly nodeNames: readonly string[];
  /** The process of the node's agent. */
  readonly nodePid: number;
  /** The address of the node and the API server in the pods' network. */
  readonly nodeAddress: string;
  /** Adds images for later pods. */
  addImages(images: TestImages): Promise<void>;
  /** The output of a container in all its runs; of the newest pod of that name, also after its deletion. */
  logs(namespace: string, pod: string, container: string): string;
  /** 127.0.0.1:PORT here, forwarded to a port of the pod. */
  forward(namespace: string, pod: string, port: number): Promise<string>;
  /** 127.0.0.1:PORT here, forwarded to an address that the node can reach, such as a Service's. */
  forwardTo(host: string, port: number): Promise<string>;
  podIP(namespace: string, pod: string): Promise<string>;
  /** The containers of a pod, with the pid of their first process. */
  processesOf(namespace: string, pod: string): Promise<readonly ContainerInfo[]>;
  /** Kills a container's first process, by default with SIGKILL. */
  kill(namespace: string, pod: string, container: string, signal?: NodeJS.Signals): Promise<void>;
  /** Runs a program in a container, as its user. */
  exec(namespace: string, pod: string, container: string, argv: readonly string[]): Promise<ExecAnswer>;
  stop(): Promise<void>;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/\/$/, "");
const API_SERVICE = { host: "10.96.0.1", port: 443 };

export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { nodes = 1, images = {}, backoffMs = 200, maxBackoffMs = 5_000, featureGates } = options;
  const missing = whyNoTestNode();
  if (missing !== undefined) throw new Error(`starting the test node: ${missing}`);
  const nodeNames = Array.from({ length: nodes }, (_, index) => `node-${index + 1}`);
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-node-"));
  const logDir = join(dir, "logs");
  const agent = await startAgent(join(dir, "state"));
  let kube: Kube | undefined;
  const stop = async () => {
    await agent.stop();
    await kube?.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    // The same port on both sides, so that the control plane's kubeconfig is valid for both.
    const port = await agent.forward((same) => ({ host: "127.0.0.1", port: same }));
    kube = await startKube({
      controllerManager: true,
      scheduler: true,
      ...(featureGates === undefined ? {} : { featureGates }),
      port,
      within: ["nsenter", `--net=/proc/${agent.pid}/ns/net`, "--"],
      apiServerArgs: [
        "--bind-address=0.0.0.0",
        `--advertise-address=${NODE_ADDRESS}`,
        "--endpoint-reconciler-type=lease",
        ...(options.apiServerArgs ?? []),
      ],
    });
    const { server, caPem, token } = kube;
    const hidden = [...new Set([ROOT, homedir(), "/tmp", "/run", "/home", "/mnt"])];
    const limits = { backoffMs, maxBackoffMs };
    const api = { server, caPem, token, serviceRange: SERVICE_RANGE, apiService: API_SERVICE };
    await agent.call("run", { ...api, nodeNames, images, hidden, logDir, ...limits });
  } catch (error) {
    await stop();
    throw error;
  }
  const pod = async (namespace: string, name: string) => agent.call("containers", { namespace, pod: name });
  return {
    kube,
    nodeNames,
    nodePid: agent.pid,
    nodeAddress: NODE_ADDRESS,
    addImages: async (more) => void (await agent.call("images", more)),
    logs: (namespace, name, container) => readLogs(logDir, namespace, name, container),
    async forward(namespace, name, port) {
      const { podIP } = await pod(namespace, name);
      return `127.0.0.1:${await agent.forward(() => ({ host: podIP, port }))}`;
    },
    forwardTo: async (host, port) => `127.0.0.1:${await agent.forward(() => ({ host, port }))}`,
    podIP: async (namespace, name) => (await pod(namespace, name)).podIP,
    processesOf: async (namespace, name) => (await pod(namespace, name)).containers,
    async kill(namespace, name, container, signal = "SIGKILL") {
      const found = (await pod(namespace, name)).containers.find((each) => each.name === container);
      if (found === undefined || found.pid === 0) throw new Error(`container ${container} of ${namespace}/${name} does not run`);
      process.kill(found.pid, signal);
    },
    exec: (namespace, name, container, argv) => agent.call("exec", { namespace, pod: name, container, argv }),
    stop,
  };
}

function readLogs(logDir: string, namespace: string, pod: string, container: string): string {
  const folders = readdirSync(logDir).filter((name) => name.startsWith(`${namespace}_${pod}_`));
  const files = folders.map((name) => join(logDir, name, `${container}.log`)).filter((file) => existsSync(file));
  const newest = files.sort((a, b) => statSync(a).birthtimeMs - statSync(b).birthtimeMs).at(-1);
  return newest === undefined ? "" : readFileSync(newest, "utf8");
}

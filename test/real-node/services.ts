// The programs of a node as processes: starts, stops and restarts each as a service manager would. Their logs are files in the node's folder.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Component, startComponent } from "../support/kube-assets/component.ts";
import type { Host } from "./hosts.ts";
import { CNI_PROGRAMS } from "./prerequisites.ts";
import type { NodePrograms } from "./programs.ts";
import { containerdConfig, kubeletConfig, kubeProxyConfig, podNetwork } from "./settings.ts";

const RESTART_MS = 1_000;

export type ServiceName = "containerd" | "kubelet" | "kube-proxy";

export interface NodeServices {
  /** Does nothing if it runs. A program that ends by itself is started again. */
  start(name: ServiceName): void;
  /** SIGTERM, and SIGKILL after the time. */
  stop(name: ServiceName, graceMs?: number): Promise<void>;
  /** The end of a program's log. */
  log(name: ServiceName, lines?: number): string;
}

export interface ApiServer {
  /** As the hosts reach it. */
  readonly server: string;
  /** Of an administrator, who impersonates the identities of kubelet and kube-proxy. */
  readonly kubeconfig: string;
  /** Verifies the API server's client certificate. */
  readonly caFile: string;
}

export function createServices(host: Host, programs: NodePrograms, { kubeconfig, caFile, server }: ApiServer): NodeServices {
  const { folder, name: nodeName } = host;
  const path = (name: string) => join(folder, name);
  const write = (name: string, content: object | string) => {
    writeFileSync(path(name), typeof content === "string" ? content : JSON.stringify(content));
    return path(name);
  };
  mkdirSync(path("cni"), { recursive: true });
  write("cni/10-pods.conflist", podNetwork(host));
  const admin = reaching(readFileSync(kubeconfig, "utf8"), server);
  const nodeUser = write("kubelet.kubeconfig", impersonating(admin, `system:node:${nodeName}`, "system:nodes"));
  const proxyUser = write("kube-proxy.kubeconfig", impersonating(admin, "system:kube-proxy", "system:authenticated"));
  const kubelet = ["--config", write("kubelet.json", kubeletConfig(host, caFile)), "--kubeconfig", nodeUser];
  kubelet.push("--root-dir", path("kubelet"), "--cert-dir", path("kubelet/pki"), `--hostname-override=${nodeName}`);
  kubelet.push(`--node-ip=${host.address}`);
  const args: Readonly<Record<ServiceName, readonly string[]>> = {
    containerd: ["--config", write("containerd.toml", containerdConfig(folder, CNI_PROGRAMS))],
    kubelet,
    // The file is not written again: kube-proxy ends when it changes.
    "kube-proxy": ["--config", write("kube-proxy.json", kubeProxyConfig(proxyUser, nodeName))],
  };
  const running = new Map<ServiceName, Component>();
  const start = (name: ServiceName) => {
    if (running.has(name)) return;
    const [command, ...rest] = host.commandLine(programs[name], args[name]);
    const component = startComponent(name, command, rest, path(`${name}.log`));
    running.set(name, component);
    // Like a service manager: the kubelet ends if containerd does not answer yet.
    void component.ended.then(async () => {
      await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
      if (running.get(name) !== component) return; // it was stopped
      running.delete(name);
      start(name);
    });
  };
  return {
    start,
    async stop(name, graceMs = 10_000) {
      const component = running.get(name);
      running.delete(name);
      await component?.stop(graceMs);
    },
    log: (name, lines = 30) =>
      readFileSync(path(`${name}.log`), "utf8")
        .split("\n")
        .slice(-lines)
        .join("\n"),
  };
}

/** The kubeconfig, with requests in the name of another user. */
function impersonating(kubeconfig: string, user: string, group: string): string {
  return kubeconfig.replace(/^( +)(client-certificate-data:)/m, `$1as: ${user}\n$1as-groups: [${group}]\n$1$2`);
}

/** The kubeconfig, with another address of the API server, which its certificate does not have. */
function reaching(kubeconfig: string, server: string): string {
  return kubeconfig.replace(/^( +)server: .*$/m, `$1server: ${server}\n$1tls-server-name: localhost`);
}

// The processes of one pod: the proxy with a pod-bound token, and the Go operator behind it, or without a proxy beside the API
// server. Kept up by whoever plays the kubelet: what has ended is started again with the same ports and data.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { type Child, startChild } from "./child-process.ts";
import type { Kube } from "./kube.ts";
import { podToken, startOperator, writeKubeconfig } from "./mesh.ts";
import { readProxyImage } from "./proxy-image.ts";

const PROXY_MAIN = fileURLToPath(new URL("../../src/proxy/main.ts", import.meta.url));

export interface PodProcessesOptions {
  readonly kube: Kube;
  readonly client: KubeClient;
  readonly manager: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly dataDir: string;
  readonly hasProxy: boolean;
  readonly lockName?: string;
  readonly verbose?: boolean;
}

/** How the pod's containers reach the API server. */
export interface PodAccess {
  readonly server: string;
  readonly caFile: string;
  readonly token: string;
  readonly kubeconfig: string;
}

export interface PodProcesses {
  readonly hasProxy: boolean;
  /** Known once the proxy runs. */
  readonly access: PodAccess | undefined;
  readonly proxy: Child | undefined;
  readonly operator: Child | undefined;
  readonly proxyRestarts: number;
  readonly operatorRestarts: number;
  /** The proxy's probe has passed once. True without a proxy. */
  readonly hasStarted: boolean;
  /** As the proxy's probe says now. True without a proxy. */
  readonly isProxyReady: boolean;
  /** Everything runs. */
  readonly isReady: boolean;
  /** Starts what does not run, and looks whether it is ready. The operator waits for the proxy, as behind a native sidecar. */
  keepUp(signal: AbortSignal): Promise<void>;
  /** SIGTERM to the operator, then to the proxy; SIGKILL when the time is over. Nothing is started afterwards. */
  stop(graceMs: number): Promise<void>;
}

export function createPodProcesses(options: PodProcessesOptions): PodProcesses {
  const { kube, client, namespace, name, uid, dataDir, hasProxy, lockName, verbose = false } = options;
  const image = readProxyImage();
  let access: PodAccess | undefined;
  let proxy: Child | undefined;
  let operator: Child | undefined;
  let addresses = { listen: "127.0.0.1:0", health: "127.0.0.1:0" };
  let isProxyReady = !hasProxy;
  let hasStarted = !hasProxy;
  let stopped = false;
  const restarts = { proxy: 0, operator: 0 };

  async function startProxy(): Promise<void> {
    if (proxy !== undefined) restarts.proxy++;
    proxy = await startChild({
      name: `proxy ${name}`,
      command: process.execPath,
      env: image.env,
      args: [...image.nodeFlags, PROXY_MAIN, ...proxyArgs(options, addresses)],
      verbose,
    });
    const ready = proxy.ready as { url: string; healthUrl: string; ca: string };
    addresses = { listen: new URL(ready.url).host, health: new URL(ready.healthUrl).host };
    access ??= await accessTo(ready.url, ready.ca);
  }

  async function accessTo(server: string, caFile: string): Promise<PodAccess> {
    const token = await podToken(client, namespace, name, uid);
    return { server, caFile, token, kubeconfig: writeKubeconfig(join(dataDir, "pod.kubeconfig"), server, caFile, token) };
  }

  const isUp = (child: Child | undefined) => child !== undefined && !child.exited;

  return {
    hasProxy,
    get access() {
      return access;
    },
    get proxy() {
      return proxy;
    },
    get operator() {
      return operator;
    },
    get proxyRestarts() {
      return restarts.proxy;
    },
    get operatorRestarts() {
      return restarts.operator;
    },
    get hasStarted() {
      return hasStarted;
    },
    get isProxyReady() {
      return isProxyReady;
    },
    get isReady() {
      return isProxyReady && (!hasProxy || isUp(proxy)) && (lockName === undefined || isUp(operator));
    },
    async keepUp(signal) {
      if (stopped || signal.aborted) return;
      mkdirSync(dataDir, { recursive: true });
      if (hasProxy && !isUp(proxy)) await startProxy();
      if (hasProxy) isProxyReady = await isOk(`http://${addresses.health}/readyz`, signal);
      else access ??= await accessTo(kube.server, kube.caFile);
      hasStarted ||= isProxyReady;
      if (lockName === undefined || !isProxyReady || access === undefined || isUp(operator)) return;
      if (operator !== undefined) restarts.operator++;
      operator = await startOperator(access.kubeconfig, namespace, lockName, name, verbose);
    },
    async stop(graceMs) {
      stopped = true;
      const deadline = performance.now() + graceMs;
      await operator?.stop(graceMs);
      await proxy?.stop(Math.max(0, deadline - performance.now()));
    },
  };
}

function proxyArgs(
  { kube, manager, namespace, name, uid, dataDir }: PodProcessesOptions,
  { listen, health }: { readonly listen: string; readonly health: string },
): string[] {
  const flags = {
    "api-server": kube.server,
    "api-server-ca": kube.caFile,
    manager,
    "pod-name": name,
    "pod-namespace": namespace,
    "pod-uid": uid,
    "data-dir": dataDir,
    listen,
    "health-listen": health,
    "log-level": "debug",
  };
  return ["--print-ready", ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value])];
}

async function isOk(url: string, signal: AbortSignal): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

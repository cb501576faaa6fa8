// The processes of one pod: the proxy with a pod-bound token, and the Go operator behind it, or the operator alone at the API
// server. A process that ended is started again with the same ports and data. Called by the fixtures that replace the kubelet.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { Child } from "./child-process.ts";
import type { Kube } from "./kube.ts";
import { identityFlags } from "./mesh/identity-files.ts";
import { podToken, startOperator, writeKubeconfig } from "./mesh.ts";
import { createProxyLauncher, proxyReady } from "./proxy-launcher.ts";

export interface PodProcessesOptions {
  readonly kube: Kube;
  readonly client: KubeClient;
  readonly manager: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly dataDir: string;
  readonly hasProxy: boolean;
  /** The proxy knows the managers by the mesh's identity; the default is false. */
  readonly identity?: boolean;
  readonly lockName?: string;
  /** Additional flags of the proxy, without their dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Additional flags of the operator. */
  readonly operatorFlags?: readonly string[];
  /** While it is false, the operator does not run: it is killed, as by a crash, or not started yet. By default always true. */
  readonly mayOperatorRun?: (pod: { readonly name: string; readonly uid: string }) => boolean;
  readonly verbose?: boolean;
}

/** How the pod's containers call the API server. */
export interface PodAccess {
  readonly server: string;
  readonly caFile: string;
  readonly token: string;
  readonly kubeconfig: string;
}

export interface PodProcesses {
  readonly hasProxy: boolean;
  /** Set once the proxy runs. */
  readonly access: PodAccess | undefined;
  readonly proxy: Child | undefined;
  readonly operator: Child | undefined;
  readonly proxyRestarts: number;
  readonly operatorRestarts: number;
  /** True once the proxy's probe has passed, or without a proxy. */
  readonly hasStarted: boolean;
  /** The current result of the proxy's probe. True without a proxy. */
  readonly isProxyReady: boolean;
  /** True if all processes run. */
  readonly isReady: boolean;
  /** Starts processes that do not run and updates readiness. The operator waits for the proxy, as behind a native sidecar. */
  keepUp(signal: AbortSignal): Promise<void>;
  /** Sends SIGTERM to the operator, then to the proxy, and SIGKILL when the time is over. Starts nothing afterwards. */
  stop(graceMs: number): Promise<void>;
}

export function createPodProcesses(options: PodProcessesOptions): PodProcesses {
  const { kube, client, namespace, name, uid, dataDir, hasProxy, lockName, operatorFlags, verbose = false } = options;
  let launchProxy: (() => Promise<Child>) | undefined;
  let access: PodAccess | undefined;
  let proxy: Child | undefined;
  let operator: Child | undefined;
  let isProxyReady = !hasProxy;
  let hasStarted = !hasProxy;
  let stopped = false;
  const restarts = { proxy: 0, operator: 0 };

  async function startProxy(): Promise<void> {
    if (proxy !== undefined) restarts.proxy++;
    launchProxy ??= createProxyLauncher({
      ...options,
      flags: { ...options.flags, ...(options.identity ? await identityFlags(client, { namespace, name, uid }, dataDir) : {}) },
    });
    proxy = await launchProxy();
  }

  async function runOperator({ kubeconfig }: PodAccess): Promise<void> {
    if (lockName === undefined) return;
    if (operator !== undefined) restarts.operator++;
    operator = await startOperator(kubeconfig, namespace, lockName, name, verbose, operatorFlags);
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
      const { url, ca, healthUrl } = proxy === undefined ? { url: kube.server, ca: kube.caFile } : proxyReady(proxy);
      if (healthUrl !== undefined) isProxyReady = await isOk(`${healthUrl}/readyz`, signal);
      // Also for a proxy that runs already: the API server may have been down when it started.
      access ??= await accessTo(url, ca);
      hasStarted ||= isProxyReady;
      if (options.mayOperatorRun?.({ name, uid }) === false) operator?.kill("SIGKILL");
      else if (isProxyReady && access !== undefined && !isUp(operator)) await runOperator(access);
    },
    async stop(graceMs) {
      stopped = true;
      const deadline = performance.now() + graceMs;
      await operator?.stop(graceMs);
      await proxy?.stop(Math.max(0, deadline - performance.now()));
    },
  };
}

async function isOk(url: string, signal: AbortSignal): Promise<boolean> {
  return fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(2_000)]) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

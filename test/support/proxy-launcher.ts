// Starts the proxy of one pod as a process, like its container. Every start has the ports and the data folder of the first. Used
// by the fixtures that replace the kubelet (mesh/pod.ts, pod-processes.ts).
import { type Child, startChild } from "./child-process.ts";
import type { Kube } from "./kube.ts";
import { readImage } from "./program-image.ts";
import { programMain } from "./programs.ts";

export interface ProxyLauncherOptions {
  readonly kube: Pick<Kube, "server" | "caFile">;
  /** host:port of the managers. */
  readonly manager: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly dataDir: string;
  /** A program of a measurement, which warms up; the default is that of programs.ts, which does not. */
  readonly proxyMain?: string;
  /** Further flags, without their dashes. */
  readonly flags?: Readonly<Record<string, string>>;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
  readonly verbose?: boolean;
}

/** The proxy's ready line. */
export interface ProxyReady {
  readonly url: string;
  readonly healthUrl: string;
  /** The file with the CA of its certificate. */
  readonly ca: string;
  /** The forward proxy, if --egress-listen is set. */
  readonly egressUrl?: string;
}

export function proxyReady({ ready }: Child): ProxyReady {
  return ready as unknown as ProxyReady;
}

/** Returns a function that starts the proxy, and resolves once the proxy listens. */
export function createProxyLauncher(options: ProxyLauncherOptions): () => Promise<Child> {
  const { kube, manager, namespace, name, uid, dataDir, proxyMain = programMain("proxy"), verbose = false } = options;
  const image = readImage("proxy");
  let listen = { api: "127.0.0.1:0", health: "127.0.0.1:0" };
  let egress: string | undefined;
  return async () => {
    const flags = {
      "api-server": kube.server,
      "api-server-ca": kube.caFile,
      manager,
      "pod-name": name,
      "pod-namespace": namespace,
      "pod-uid": uid,
      "data-dir": dataDir,
      listen: listen.api,
      "health-listen": listen.health,
      "log-level": "debug",
      // Tests measure nothing, and a warm-up costs a second of CPU time.
      ...(options.proxyMain === undefined ? { "warm-up-ms": "0" } : {}),
      ...options.flags,
      ...(egress === undefined ? {} : { "egress-listen": egress }),
    };
    const child = await startChild({
      name: `proxy ${name}`,
      command: process.execPath,
      env: { ...image.env, ...options.env },
      args: [
        ...image.nodeFlags,
        proxyMain,
        "--print-ready",
        ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
      ],
      verbose,
    });
    const { url, healthUrl, egressUrl } = proxyReady(child);
    egress = egressUrl === undefined ? undefined : new URL(egressUrl).host;
    listen = { api: new URL(url).host, health: new URL(healthUrl).host };
    return child;
  };
}

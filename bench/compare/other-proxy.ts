// Runs another mesh's proxy (`ctrlmesh-proxy` of KusionStack/controller-mesh) as its pod would: plain HTTP on the loopback, the
// administrator's token towards the API server, and the route that the stub of its manager sends.
import { accessSync, constants, mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "../../test/support/child-process.ts";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { Kube } from "../../test/support/kube.ts";
import { writeKubeconfig } from "../../test/support/mesh.ts";
import type { ProxyProcess } from "../way.ts";

export interface OtherProxy extends ProxyProcess {
  readonly url: string;
  stop(): Promise<void>;
}

const PRIVATE_ROOT = fileURLToPath(new URL("./private-root.sh", import.meta.url));
const READY_MS = 30_000;
/** How long it may take for one answer meanwhile. */
const ANSWER_MS = 2_000;
/** How much of the proxy's output an error shows. */
const LAST_LINES = 20;

/** @returns why the file cannot be run, or undefined */
export function whyNotRunnable(binary: string): string | undefined {
  try {
    accessSync(binary, constants.X_OK);
    return statSync(binary).isFile() ? undefined : `${binary} is not a file`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws Error with the last lines of the proxy's output if it does not become ready */
export async function startOtherProxy(binary: string, kube: Kube): Promise<OtherProxy> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-other-"));
  const root = join(folder, "root");
  mkdirSync(root);
  const kubeconfig = writeKubeconfig(join(folder, "kubeconfig"), kube.server, kube.caFile, kube.token);
  const remove = () => {
    rmSync(kubeconfig);
    rmdirSync(root); // never with what is in it: if the mounts leaked, these are this machine's files
    rmdirSync(folder);
  };
  const port = await freePort();
  // The mounts need root, or a user namespace in which this user is root.
  const unshare = ["--mount", "--propagation=private", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"])];
  const flags = {
    "proxy-apiserver-port": port,
    "metrics-health-port": await freePort(),
    tport: await freePort(),
  };
  const launch = () =>
    startChild({
      name: "other proxy",
      command: "unshare",
      args: [
        ...unshare,
        "sh",
        PRIVATE_ROOT,
        root,
        resolve(binary),
        ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      ],
      env: { KUBECONFIG: kubeconfig, POD_NAMESPACE: "foo-system", POD_NAME: "bench-other", POD_IP: "127.0.0.1" },
      readyLine: false,
    });
  const url = `http://127.0.0.1:${port}`;
  const start = async () => {
    const child = await launch();
    const isSettled = await eventually(() => child.exited || isServing(url, kube.token), READY_MS).catch(() => false);
    if (isSettled && !child.exited) return child;
    const why = isSettled ? "the process ended" : `no answer from ${url} within ${READY_MS / 1000} s`;
    await child.stop(0);
    throw notReady(binary, why, child);
  };
  let child = await start().catch((error: unknown) => {
    remove();
    throw error;
  });
  return {
    url,
    get pid() {
      return child.pid;
    },
    async restart() {
      await child.stop(0);
      child = await start();
    },
    async stop() {
      await child.stop(0);
      remove();
    },
  };
}

async function isServing(url: string, token: string): Promise<boolean> {
  return (
    await fetch(`${url}/version`, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(ANSWER_MS) })
  ).ok;
}

function notReady(binary: string, why: string, child: Child): Error {
  const output = child.output().split("\n").slice(-LAST_LINES).join("\n");
  return new Error(`${binary} did not become ready: ${why}. Its output ends with\n${output}`);
}

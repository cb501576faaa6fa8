// What was replaced during the soak: the sidecars' certificates, the tokens of all pods on the first node, and the logs of the operator's containers.
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { HEALTH_PORT } from "../../src/api/injected-pod.ts";
import { HOME, OPERATOR_SELECTOR } from "./flows/operator.ts";
import type { World } from "./world.ts";

const ISSUED = /^ctrlmesh_proxy_certificate_requests_total\{result="issued"\} (\d+)$/m;

const TOKEN_VOLUME = /^(kube-api-access-|ctrlmesh-)/;

export interface Rotations {
  /** The number of certificates that the manager has issued to the running sidecars. */
  readonly certificates: number;
  /** The kubelet's present version of each volume with a token. */
  readonly tokens: ReadonlyMap<string, string>;
  /** The number of rotated log files of the operator's containers. */
  readonly logs: number;
}

export async function rotations(world: World): Promise<Rotations> {
  const [{ folder }] = world.nodes;
  let certificates = 0;
  for (const pod of await world.podNames(HOME, OPERATOR_SELECTOR)) {
    const host = await world.cluster.forward(HOME, pod, HEALTH_PORT);
    const text = await (await fetch(`http://${host}/metrics`)).text();
    certificates += Number(ISSUED.exec(text)?.[1] ?? 0);
  }
  return {
    certificates,
    tokens: tokensOf(join(folder, "kubelet/pods")),
    logs: oldLogs(join(folder, "pods")),
  };
}

/** The kubelet writes a projected volume anew, and then points `..data` to the new files. */
function tokensOf(pods: string): Map<string, string> {
  const volumes = readdirSync(pods).flatMap((uid) => {
    const folder = join(pods, uid, "volumes/kubernetes.io~projected");
    return namesIn(folder).map((name) => join(folder, name, "..data"));
  });
  return new Map(
    volumes.filter((path) => TOKEN_VOLUME.test(path.split("/").at(-2) ?? "")).map((path) => [path, readlinkSync(path)]),
  );
}

function oldLogs(pods: string): number {
  const containers = readdirSync(pods)
    .filter((name) => name.startsWith(`${HOME}_`))
    .flatMap((pod) => namesIn(join(pods, pod)).map((name) => join(pods, pod, name)));
  return containers.flatMap(namesIn).filter((file) => !/^\d+\.log$/.test(file)).length;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // it has just gone
  }
}

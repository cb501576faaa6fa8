// A cluster after `helm install`: the real control plane, a node that runs pods, and the chart and images of this checkout. Tests
// use it through kubectl, like a user.

import { startTestCluster, type TestCluster } from "../../node/cluster.ts";
import { eventually } from "../eventually.ts";
import { CHART_ARGS, helm, MESH_NAMESPACE, meshImage, RELEASE } from "../helm.ts";
import { imageOf } from "../images.ts";
import { type KubectlResult, kubectl, tryKubectl } from "../kubectl.ts";
import { OPERATOR_IMAGE, operatorImage } from "./operator.ts";

export interface InstalledMesh {
  readonly cluster: TestCluster;
  readonly kubeconfig: string;
  run(...args: string[]): Promise<string>;
  tryRun(...args: string[]): Promise<KubectlResult>;
  apply(...objects: object[]): Promise<string>;
  get<T>(...args: string[]): Promise<T>;
  /** Waits for a workload's rollout. @throws Error with its pods' state */
  rolledOut(workload: string, namespace: string): Promise<void>;
  /** The names of the pods with the label, without those that are ending, for which a rollout does not wait. */
  podNames(namespace: string, selector: string): Promise<string[]>;
  stop(): Promise<void>;
}

const VERSION = "0.1.0";

/** Starts the cluster and, by default, installs the chart and waits until it runs. */
export async function startInstalledMesh({
  install = true,
  values = {},
}: {
  install?: boolean;
  values?: object;
} = {}): Promise<InstalledMesh> {
  const [proxy, manager, operator] = await Promise.all([
    imageOf(`ctrlmesh/proxy:${VERSION}`),
    imageOf(`ctrlmesh/manager:${VERSION}`),
    operatorImage(),
  ]);
  const cluster = await startTestCluster({
    images: { [meshImage("proxy", VERSION)]: proxy, [meshImage("manager", VERSION)]: manager, [OPERATOR_IMAGE]: operator },
  });
  const mesh = meshOn(cluster);
  try {
    if (install) await installChart(mesh, values);
  } catch (error) {
    await mesh.stop();
    throw error;
  }
  return mesh;
}

/** kubectl on a cluster, as a user has it. */
export function meshOn(cluster: TestCluster): InstalledMesh {
  const { kubeconfig } = cluster.kube;
  const run = (...args: string[]) => kubectl(kubeconfig, args);
  const mesh: InstalledMesh = {
    cluster,
    kubeconfig,
    run,
    tryRun: (...args) => tryKubectl(kubeconfig, args),
    apply: (...objects) =>
      kubectl(kubeconfig, ["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects })),
    get: async <T>(...args: string[]) => JSON.parse(await run("get", ...args, "-o", "json")) as T,
    async rolledOut(workload, namespace) {
      const { code, stdout, stderr } = await tryKubectl(kubeconfig, [
        "rollout",
        "status",
        workload,
        "-n",
        namespace,
        "--timeout=90s",
      ]);
      if (code !== 0) throw new Error(`${workload}: ${stdout}${stderr}\n${await unreadyPods(mesh, namespace)}`);
    },
    podNames: async (namespace, selector) =>
      (await mesh.get<{ items: SomePod[] }>("pods", "-n", namespace, "-l", selector)).items
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name),
    stop: () => cluster.stop(),
  };
  return mesh;
}

interface SomePod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: {
    readonly initContainers?: readonly { readonly name: string }[];
    readonly containers: readonly { readonly name: string }[];
  };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

async function unreadyPods(mesh: InstalledMesh, namespace: string): Promise<string> {
  const { items } = await mesh.get<{ items: SomePod[] }>("pods", "-n", namespace);
  const unready = items.filter(
    ({ status }) => !status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True"),
  );
  return unready
    .map(({ metadata: { name }, spec, status }) => {
      const logs = [...(spec.initContainers ?? []), ...spec.containers].map(
        (each) => `${name}/${each.name}: ${mesh.cluster.logs(namespace, name, each.name).slice(-1_500)}`,
      );
      return [JSON.stringify(status), ...logs].join("\n");
    })
    .join("\n---\n");
}

/** Runs `helm install` as in docs/tasks/install.md and waits until the manager serves. */
export async function installChart(mesh: InstalledMesh, values: object = {}): Promise<void> {
  const args = ["install", RELEASE, ...CHART_ARGS, "--create-namespace", "--values", "-", "--wait", "--timeout", "90s"];
  try {
    await helm(args, mesh.kubeconfig, JSON.stringify(values));
  } catch (error) {
    const said = await Promise.all(
      (await mesh.podNames(MESH_NAMESPACE, "")).map((name) => mesh.cluster.logs(MESH_NAMESPACE, name, "manager")),
    );
    throw new Error(`installing; the managers printed\n${said.map((text) => text.slice(-2_000)).join("\n---\n")}`, {
      cause: error,
    });
  }
  await eventually(
    async () => (await mesh.tryRun("get", "mutatingwebhookconfiguration", "ctrlmesh-injection")).code === 0,
    20_000,
  );
}

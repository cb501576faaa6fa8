// An operator on multicluster-runtime in a pod: its process, which restarts like a container, and its access to the other clusters.
// Each pod has Secrets, or access providers, of its own, since on loopback client-go takes the forward proxy only from a kubeconfig's proxy-url.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { CLUSTERS_PATH } from "../../src/mesh/ownership/clusters.ts";
import { startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";
import type { Kube } from "./kube.ts";
import type { Mesh, MeshPod } from "./mesh.ts";
import { type Supervised, supervise } from "./supervised.ts";

/** What the operator's process needs of its pod. */
type OperatorPod = Pick<MeshPod, "name" | "proxyUrl" | "proxyCaPem" | "egressUrl" | "kubeconfig">;

/** The label of the ConfigMaps that the operator writes to. */
export const WRITE_LABEL = { "multicluster.ctrlmesh.io/write": "true" } as const;

/** Lets the operators read the Secrets of their namespace. */
export function allowSecrets(mesh: Mesh): Promise<void> {
  return allowReading(mesh, "", "secrets");
}

/** Lets the operators read the objects of a kind in their namespace. */
export async function allowReading({ appNamespace: namespace, apply }: Mesh, group: string, resource: string): Promise<void> {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const metadata = { namespace, name: `read-${resource}` };
  const rules = [{ apiGroups: [group], resources: [resource], verbs: ["get", "list", "watch"] }];
  await apply(stringify({ apiVersion, kind: "Role", metadata, rules }));
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: metadata.name };
  const subjects = [{ kind: "ServiceAccount", name: "foo-operator", namespace }];
  await apply(stringify({ apiVersion, kind: "RoleBinding", metadata, roleRef, subjects }));
}

/**
 * @param clusters by name
 * @param clusterOf the cluster of the pod's kubeconfig; default: through its forward proxy
 */
export async function startMulticlusterOperator(
  mesh: Mesh,
  pod: OperatorPod,
  clusters: Readonly<Record<string, Kube>>,
  clusterOf: (pod: OperatorPod, kube: Kube, name: string) => object = clusterThrough,
): Promise<Supervised> {
  const label = `kubeconfigs-of-${pod.name}`;
  for (const [name, kube] of Object.entries(clusters)) {
    const metadata = { namespace: mesh.appNamespace, name: `${pod.name}-${name}`, labels: { [label]: "true" } };
    const stringData = { kubeconfig: kubeconfigOf(clusterOf(pod, kube, name), kube) };
    await mesh.apply(stringify({ apiVersion: "v1", kind: "Secret", metadata, stringData }));
  }
  return startOperator(mesh, pod, `--secret-label=${label}`);
}

/**
 * The same with the clusters from ClusterProfiles, which must have the providers of `accessProviderOf`.
 * @param dir for the file with its access providers, and for the credentials
 */
export function startInventoryOperator(
  mesh: Mesh,
  pod: MeshPod,
  clusters: Readonly<Record<string, Kube>>,
  dir: string,
): Promise<Supervised> {
  const providers = Object.entries(clusters).map(([cluster, { token }]) => {
    const credentials = join(dir, `${pod.name}-${cluster}.json`);
    const apiVersion = "client.authentication.k8s.io/v1";
    writeFileSync(credentials, JSON.stringify({ apiVersion, kind: "ExecCredential", status: { token } }));
    const execConfig = { apiVersion, command: "cat", args: [credentials] };
    return { name: accessProviderOf(pod, cluster), execConfig };
  });
  const accessFile = join(dir, `${pod.name}-access.json`);
  writeFileSync(accessFile, JSON.stringify({ providers }));
  return startOperator(mesh, pod, `--access-file=${accessFile}`);
}

/** Each pod has access providers of its own, as it has Secrets of its own. */
export function accessProviderOf({ name }: MeshPod, cluster: string): string {
  return `${name}-${cluster}`;
}

/** The cluster of a kubeconfig, or of a ClusterProfile's provider, that is reached through the pod's sidecar. */
export function clusterThrough({ egressUrl }: OperatorPod, { server, caPem }: Kube) {
  return { server, "certificate-authority-data": Buffer.from(caPem).toString("base64"), "proxy-url": egressUrl };
}

async function startOperator(mesh: Mesh, pod: OperatorPod, ...args: readonly string[]): Promise<Supervised> {
  const command = await goProgram("test/operators/go-multicluster");
  const env = {
    KUBECONFIG: pod.kubeconfig,
    POD_NAME: pod.name,
    POD_NAMESPACE: mesh.appNamespace,
    LOCK_NAME: mesh.appName,
    HTTPS_PROXY: pod.egressUrl,
    NO_PROXY: new URL(pod.proxyUrl).hostname,
  };
  return supervise({
    launch: () => startChild({ name: `operator ${pod.name}`, command, args, env, readyLine: false }),
  });
}

/** The cluster of a kubeconfig as `ctrlmesh kubeconfig` derives it, with the port and the CA of the test's pod. */
export function clusterServedBy({ proxyUrl, proxyCaPem }: OperatorPod, _: Kube, name: string) {
  const ca = Buffer.from(proxyCaPem).toString("base64");
  return { server: `${proxyUrl}${CLUSTERS_PATH}${name}`, "certificate-authority-data": ca };
}

function kubeconfigOf(cluster: object, { token }: Kube): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "other",
    clusters: [{ name: "other", cluster }],
    users: [{ name: "other", user: { token } }],
    contexts: [{ name: "other", context: { cluster: "other", user: "other" } }],
  });
}

// An operator on multicluster-runtime in a pod: its process, which restarts like a container, and its kubeconfigs of the other clusters.
// Each pod has Secrets of its own, since on loopback client-go takes the forward proxy only from a kubeconfig's proxy-url.
import { stringify } from "yaml";
import { startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";
import type { Kube } from "./kube.ts";
import type { Mesh, MeshPod } from "./mesh.ts";
import { type Supervised, supervise } from "./supervised.ts";

/** The label of the ConfigMaps that the operator writes to. */
export const WRITE_LABEL = { "multicluster.ctrlmesh.io/write": "true" } as const;

/** Lets the operators read the Secrets of their namespace. */
export async function allowSecrets({ appNamespace: namespace, apply }: Mesh): Promise<void> {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const metadata = { namespace, name: "read-secrets" };
  const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch"] }];
  await apply(stringify({ apiVersion, kind: "Role", metadata, rules }));
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "read-secrets" };
  const subjects = [{ kind: "ServiceAccount", name: "foo-operator", namespace }];
  await apply(stringify({ apiVersion, kind: "RoleBinding", metadata, roleRef, subjects }));
}

/** @param clusters by name */
export async function startMulticlusterOperator(
  mesh: Mesh,
  pod: MeshPod,
  clusters: Readonly<Record<string, Kube>>,
): Promise<Supervised> {
  const label = `kubeconfigs-of-${pod.name}`;
  for (const [name, kube] of Object.entries(clusters)) {
    const metadata = { namespace: mesh.appNamespace, name: `${pod.name}-${name}`, labels: { [label]: "true" } };
    const stringData = { kubeconfig: kubeconfigThrough(pod, kube) };
    await mesh.apply(stringify({ apiVersion: "v1", kind: "Secret", metadata, stringData }));
  }
  const command = await goProgram("test/operators/go-multicluster");
  const env = {
    KUBECONFIG: pod.kubeconfig,
    POD_NAME: pod.name,
    POD_NAMESPACE: mesh.appNamespace,
    LOCK_NAME: mesh.appName,
    HTTPS_PROXY: pod.egressUrl,
    NO_PROXY: new URL(pod.proxyUrl).hostname,
  };
  const args = [`--secret-label=${label}`];
  return supervise({
    launch: () => startChild({ name: `operator ${pod.name}`, command, args, env, readyLine: false }),
  });
}

function kubeconfigThrough({ egressUrl }: MeshPod, { server, caPem, token }: Kube): string {
  const cluster = { server, "certificate-authority-data": Buffer.from(caPem).toString("base64"), "proxy-url": egressUrl };
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "other",
    clusters: [{ name: "other", cluster }],
    users: [{ name: "other", user: { token } }],
    contexts: [{ name: "other", context: { cluster: "other", user: "other" } }],
  });
}

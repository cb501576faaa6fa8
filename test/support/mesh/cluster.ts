// The objects of a mesh's cluster besides the operator's own: CRDs, namespaces, the service account and its rights, and the pod
// objects of the fixture's processes, each with a token bound to it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import type { Resource } from "../../../src/kube/client/resource.ts";
import { PODS, type Pod } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import type { Kube } from "../kube.ts";
import { kubectl } from "../kubectl.ts";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const SERVICE_ACCOUNT = "foo-operator";
export const SERVICE_ACCOUNTS: Resource = {
  group: "",
  version: "v1",
  resource: "serviceaccounts",
  kind: "ServiceAccount",
  namespaced: true,
};

export interface Foo extends KubeObject {
  readonly spec?: { readonly message?: string };
  readonly status?: { readonly reconciledBy?: string; readonly count?: number; readonly observedGeneration?: number };
}
export const FOOS: Resource<Foo> = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos", kind: "Foo", namespaced: true };

/** Prepares the cluster for a VirtualApp and its operator in `appNamespace`. */
export async function prepareCluster({ kubeconfig }: Kube, appNamespace: string): Promise<void> {
  await kubectl(kubeconfig, ["apply", "-f", join(ROOT, "deploy/crds"), "-f", join(ROOT, "test/operators/go-foo/crd.yaml")]);
  await kubectl(kubeconfig, ["wait", "--for=condition=Established", "crd", "--all", "--timeout=20s"]);
  await kubectl(kubeconfig, ["apply", "-f", "-"], clusterYaml(appNamespace));
  await kubectl(kubeconfig, ["apply", "-f", join(ROOT, "test/operators/go-foo/rbac.yaml")]);
}

function clusterYaml(appNamespace: string): string {
  const binding = (name: string, role: string) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    subjects: [{ kind: "ServiceAccount", name: SERVICE_ACCOUNT, namespace: appNamespace }],
  });
  const named = (kind: string, name: string, namespace?: string) => ({
    apiVersion: "v1",
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}) },
  });
  return [
    named("Namespace", appNamespace),
    named("Namespace", "ctrlmesh-system"),
    named("ServiceAccount", SERVICE_ACCOUNT, appNamespace),
    binding(`foo-operator-${appNamespace}`, "foo-operator"),
  ]
    .map((object) => stringify(object))
    .join("---\n");
}

/** The pod object. Its label says that the proxy was injected for `app`. */
export function podObject(namespace: string, app: string, name: string, labels: Readonly<Record<string, string>>): Pod {
  return {
    metadata: { namespace, name, labels: { component: app, "ctrlmesh.kruise.io/virtual-app-injected": app, ...labels } },
    spec: { serviceAccountName: SERVICE_ACCOUNT, containers: [{ name: "operator", image: "example.invalid/foo-operator" }] },
  };
}

/** A token bound to the pod, as a kubelet gets it. */
export async function podToken(client: KubeClient, namespace: string, name: string, uid: string): Promise<string> {
  const body = { spec: { expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } } };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace, name: SERVICE_ACCOUNT }, "token", body);
  return (answer as { status: { token: string } }).status.token;
}

export async function setPodReady(client: KubeClient, namespace: string, name: string): Promise<void> {
  const body = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

/** The last status of a kubelet: the containers have ended and will not restart. */
export function endedStatus(containers: readonly string[], initContainers: readonly string[] = []): object {
  const ended = (name: string) => ({
    ...{ name, ready: false, restartCount: 0, image: "example.invalid/image", imageID: "" },
    state: { terminated: { exitCode: 0, reason: "Completed" } },
  });
  return {
    phase: "Succeeded",
    conditions: [{ type: "Ready", status: "False" }],
    containerStatuses: containers.map(ended),
    ...(initContainers.length === 0 ? {} : { initContainerStatuses: initContainers.map(ended) }),
  };
}

export async function setPodEnded(client: KubeClient, namespace: string, name: string): Promise<void> {
  const body = { status: endedStatus(["operator"]) };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

export function writeKubeconfig(path: string, server: string, ca: string, token: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "pod",
    clusters: [{ name: "mesh", cluster: { server, "certificate-authority": ca } }],
    users: [{ name: "pod", user: { token } }],
    contexts: [{ name: "pod", context: { cluster: "mesh", user: "pod" } }],
  };
  writeFileSync(path, stringify(config), { mode: 0o600 });
  return path;
}

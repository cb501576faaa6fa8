// The objects of a mesh's cluster besides the operator's own: CRDs, namespaces, the service account and its rights, and the pod
// objects of the fixture's processes, each with a token bound to it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments, stringify } from "yaml";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import type { Resource } from "../../../src/kube/client/resource.ts";
import { NAMESPACES, PODS, type Pod } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { eventually } from "../eventually.ts";
import type { Kube } from "../kube.ts";

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

const CRDS: Resource<Crd> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  resource: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};
const RBAC = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: false } as const;
const KINDS: readonly Resource[] = [
  NAMESPACES,
  SERVICE_ACCOUNTS,
  CRDS,
  { ...RBAC, resource: "clusterroles", kind: "ClusterRole" },
  { ...RBAC, resource: "clusterrolebindings", kind: "ClusterRoleBinding" },
];

interface Crd extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Prepares the cluster for a VirtualApp and its operator in `appNamespace`. */
export async function prepareCluster({ server, caPem, token }: Kube, appNamespace: string): Promise<void> {
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "ctrlmesh-test" });
  const files = [...filesOf("deploy/crds"), "test/operators/go-foo/crd.yaml", "test/operators/go-foo/rbac.yaml"];
  try {
    for (const object of [...files.flatMap(objectsOf), ...operatorHome(appNamespace)]) await apply(client, object);
    await eventually(async () => (await client.list(CRDS)).items.every(isEstablished), 20_000);
  } finally {
    await client.close();
  }
}

async function apply(client: KubeClient, object: KubeObject): Promise<void> {
  const resource = KINDS.find(({ kind }) => kind === object.kind);
  if (resource === undefined) throw new Error(`no resource is known for the kind ${object.kind}`);
  const { namespace, name = "" } = object.metadata;
  await client.patch(resource, { namespace, name }, { type: "apply", body: object, fieldManager: "ctrlmesh-test" });
}

function isEstablished({ status }: Crd): boolean {
  return status?.conditions?.some((condition) => condition.type === "Established" && condition.status === "True") ?? false;
}

function objectsOf(path: string): KubeObject[] {
  return parseAllDocuments(readFileSync(join(ROOT, path), "utf8")).map((document) => document.toJS() as KubeObject);
}

function filesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder)).map((name) => join(folder, name));
}

function operatorHome(appNamespace: string): KubeObject[] {
  const named = (kind: string, name: string, namespace?: string) => ({
    apiVersion: "v1",
    kind,
    metadata: { name, ...(namespace ? { namespace } : {}) },
  });
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: `foo-operator-${appNamespace}` },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "foo-operator" },
    subjects: [{ kind: "ServiceAccount", name: SERVICE_ACCOUNT, namespace: appNamespace }],
  };
  const homes = [named("Namespace", appNamespace), named("Namespace", "ctrlmesh-system")];
  return [...homes, named("ServiceAccount", SERVICE_ACCOUNT, appNamespace), binding];
}

/**
 * The pod object, with the label of a pod that was injected for `app`.
 * @param certDir where the certificate of the operator's webhooks is mounted
 */
export function podObject(
  namespace: string,
  app: string,
  name: string,
  labels: Readonly<Record<string, string>>,
  proxyEnv: readonly { readonly name: string; readonly value: string }[] = [],
  certDir?: string,
): Pod {
  const volumeMounts = certDir === undefined ? [] : [{ name: "certs", mountPath: certDir }];
  const operator = { name: "operator", image: "example.invalid/foo-operator", volumeMounts };
  const proxy = { name: "ctrlmesh-proxy", image: "example.invalid/ctrlmesh-proxy", env: proxyEnv };
  const spec = {
    serviceAccountName: SERVICE_ACCOUNT,
    containers: proxyEnv.length > 0 ? [operator, proxy] : [operator],
    volumes: volumeMounts.map(({ name: volume }) => ({ name: volume, emptyDir: {} })),
  };
  const ownLabels = { component: app, "ctrlmesh.kruise.io/virtual-app-injected": app };
  return { metadata: { namespace, name, labels: { ...ownLabels, ...labels } }, spec };
}

/** A token bound to the pod, as a kubelet gets it. The default audience is the API server. */
export async function podToken(
  client: KubeClient,
  namespace: string,
  name: string,
  uid: string,
  audiences: readonly string[] = [],
): Promise<string> {
  const body = { spec: { audiences, expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } } };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace, name: SERVICE_ACCOUNT }, "token", body);
  return (answer as { status: { token: string } }).status.token;
}

export async function setPodReady(client: KubeClient, namespace: string, name: string, podIP?: string): Promise<void> {
  const addresses = podIP === undefined ? {} : { podIP, podIPs: [{ ip: podIP }] };
  const body = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }], ...addresses } };
  await client.patch(PODS, { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

/** The last status of a kubelet: the containers have ended and will not restart. */
export function endedStatus(containers: readonly string[], initContainers: readonly string[] = []): object {
  const ended = (name: string) => ({
    name,
    ready: false,
    restartCount: 0,
    image: "example.invalid/image",
    imageID: "",
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

// Another cluster whose namespaces are divided, for tests: its namespaces, the manager's access to them, and its MeshCluster.
import { stringify } from "yaml";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import type { Kube } from "./kube.ts";
import type { Mesh } from "./mesh.ts";
import { createProbe } from "./probe.ts";

type Labels = Readonly<Record<string, string | null>>;

export type DividedCluster = ReturnType<typeof createDividedCluster>;

/**
 * @param name of the MeshCluster and of the Secret
 * @param server by which the mesh reaches it; default: that of the API server
 */
export function createDividedCluster(name: string, kube: Kube, server: Pick<Kube, "server" | "caPem"> = kube) {
  const authority = Buffer.from(server.caPem).toString("base64");
  const admin = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
  const create = async (path: string, body: object) => {
    const { status, body: answer } = await admin.send("POST", path, body);
    if (status !== 201) throw new Error(`creating in ${path}: ${status} ${answer}`);
    return JSON.parse(answer.toString());
  };
  const kubeconfig = (token: string, more: object = {}, url = server.server) => {
    const cluster = { server: url, "certificate-authority-data": authority };
    return stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": name,
      clusters: [{ name, cluster }],
      users: [{ name, user: { token, ...more } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    });
  };
  /** A token that may list and watch namespaces, and nothing else. */
  const readerToken = async (): Promise<string> => {
    const metadata = { name: "ctrlmesh" };
    await create("/api/v1/namespaces/default/serviceaccounts", { metadata });
    const rules = [{ apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"] }];
    await create("/apis/rbac.authorization.k8s.io/v1/clusterroles", { metadata, rules });
    await create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      metadata,
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "ctrlmesh" },
      subjects: [{ kind: "ServiceAccount", namespace: "default", name: "ctrlmesh" }],
    });
    const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const { status } = await create("/api/v1/namespaces/default/serviceaccounts/ctrlmesh/token", request);
    return status.token;
  };
  let token: string | undefined;
  let firstDrainSeconds = 0;
  let isLonger = false;
  /**
   * Creates or changes a Secret with the manager's access, by default that of the cluster.
   * @param more fields of the kubeconfig's user beside the token
   */
  const giveAccess = async (mesh: Mesh, more: object = {}, other: { readonly name?: string; readonly server?: string } = {}) => {
    token ??= await readerToken();
    const metadata = { namespace: mesh.appNamespace, name: other.name ?? name };
    const stringData = { kubeconfig: kubeconfig(token, more, other.server) };
    await mesh.apply(stringify({ apiVersion: "v1", kind: "Secret", metadata, stringData }));
  };
  return {
    name,
    kube,
    giveAccess,
    /** Makes the manager read the Secret at once. Without a change of the MeshCluster it reads the Secret every 30 s. */
    async readSecretNow(mesh: Mesh): Promise<void> {
      isLonger = !isLonger;
      const drainSeconds = firstDrainSeconds + (isLonger ? 1 : 0);
      const of = { namespace: mesh.appNamespace, name };
      await mesh.client.patch(MESH_CLUSTERS, of, { type: "merge", body: { spec: { drainSeconds } } });
    },
    /** Leads there directly, as an administrator. */
    adminKubeconfig: () => kubeconfig(kube.token),
    createNamespace: (namespace: string, labels: Labels = {}) =>
      create("/api/v1/namespaces", { metadata: { name: namespace, labels } }),
    createConfigMap: (namespace: string, labels: Labels = {}) =>
      create(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "shared", labels } }),
    async labelNamespace(namespace: string, labels: Labels): Promise<void> {
      const headers = { "content-type": "application/merge-patch+json" };
      const { status } = await admin.send("PATCH", `/api/v1/namespaces/${namespace}`, { metadata: { labels } }, headers);
      if (status !== 200) throw new Error(`labelling ${namespace}: ${status}`);
    },
    /** As `kubectl get namespaces -o json` prints them. */
    async namespaceList(): Promise<string> {
      const { body } = await admin.get("/api/v1/namespaces");
      const { items, ...list } = JSON.parse(body.toString());
      return JSON.stringify({ ...list, items: items.map((item: object) => ({ apiVersion: "v1", kind: "Namespace", ...item })) });
    },
    /** Creates the MeshCluster, and with Terminate the Secret with the manager's access. */
    async join(mesh: Mesh, drainSeconds: number, interception: "Terminate" | "Tunnel" = "Terminate"): Promise<void> {
      firstDrainSeconds = drainSeconds;
      const metadata = { namespace: mesh.appNamespace, name };
      const object = { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "MeshCluster", metadata };
      const spec = { servers: [server.server], interception, drainSeconds };
      if (interception === "Tunnel") return void (await mesh.apply(stringify({ ...object, spec })));
      await giveAccess(mesh);
      const terminate = { certificateAuthorityData: authority, kubeconfigSecret: name };
      await mesh.apply(stringify({ ...object, spec: { ...spec, terminate } }));
    },
    close: () => admin.close(),
  };
}

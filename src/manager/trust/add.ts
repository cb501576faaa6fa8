// Keeps the ConfigMap `ctrlmesh-ca` of a namespace current, which contains the CAs of the mesh and the
// cluster for proxies and operators. A request names such a ConfigMap. Invariant: it exists before a pod of
// an app can start, and is removed only when no pod in the namespace can mount it.

import { API_PORT, CA_CONFIG_MAP, INJECTED_LABEL } from "../../api/injected-pod.ts";
import { MeshError } from "../../base/errors.ts";
import { CONFIG_MAPS, type ConfigMap, PODS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isNamespaceEnding, isStatus } from "../../kube/status.ts";
import { type Controller, changed, controllerOf } from "../../runtime/controller.ts";
import { ensure } from "../../runtime/ensure.ts";
import type { Reconciler, Result } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";
import { CA_CONFIG_MAPS, isOfManager, MANAGED_BY, MANAGER } from "../identity/mesh-namespaces.ts";
import { CLUSTER_CA_CONFIG_MAP, SERVICE_ACCOUNT_DIR } from "../injection/names.ts";

interface TrustControllerOptions extends ControllerBase, Pick<ManagerContext, "sources" | "apps"> {
  readonly identity: Pick<MeshIdentity, "trustPem" | "onChange">;
}

/** Watches the apps, whose namespaces need the ConfigMap, the ConfigMaps themselves, and the mesh's CAs. */
export function addTrustController(options: TrustControllerOptions): Controller {
  const { informers, identity, sources, apps } = options;
  const selectors = CA_CONFIG_MAPS;
  const configMaps = informers.store(CONFIG_MAPS, selectors);
  const requestIn = (namespace = "") => ({ namespace, name: CA_CONFIG_MAP });
  const ofMaps = controllerOf({ name: "trust", ...options }).for(CONFIG_MAPS, {
    selectors,
    predicates: [changed(({ data }) => data)],
  });
  return sources
    .reduce(
      (builder, { resource }) =>
        builder.watches(resource, ({ metadata }) => [requestIn(metadata.namespace)], { predicates: [changed(() => undefined)] }),
      ofMaps,
    )
    .on<void>(identity.onChange, () => {
      const objects = [...apps.list().map(({ object }) => object), ...configMaps.list()];
      return [...new Set(objects.map(({ metadata }) => metadata.namespace))].map(requestIn);
    })
    .withReconciler(createTrustReconciler({ ...options, configMaps }));
}

// The cluster's CA changes once in years, and the kubelet takes a minute or two to update a volume.
const LOOK_AGAIN_MS = 5 * 60_000;
// Injected pods that outlive their app still need the current CAs, and end one after the other.
const STILL_USED_MS = 60_000;

/** @param options.configMaps those of the name {@link CA_CONFIG_MAP} */
export function createTrustReconciler(options: {
  readonly client: Pick<KubeClient, "get" | "list" | "create" | "patch" | "delete">;
  readonly identity: Pick<MeshIdentity, "trustPem">;
  readonly apps: { list(namespace: string): readonly unknown[] };
  readonly configMaps: Pick<Store<ConfigMap>, "get">;
}): Reconciler {
  const { client, identity, apps, configMaps } = options;

  async function publish(namespace: string, signal: AbortSignal): Promise<Result> {
    const pem = await clusterCa(namespace, signal);
    const configMap = configMaps.get(CA_CONFIG_MAP, namespace);
    const data = { ...configMap?.data, ...trustData(identity.trustPem, pem) };
    const desired = { metadata: { name: CA_CONFIG_MAP, namespace, labels: { [MANAGED_BY]: MANAGER } }, data };
    await ensure(client, CONFIG_MAPS, configMap, desired, { signal, createBy: "apply" });
    return { requeueAfterMs: LOOK_AGAIN_MS };
  }

  async function clusterCa(namespace: string, signal: AbortSignal): Promise<string> {
    const ref = { namespace, name: CLUSTER_CA_CONFIG_MAP };
    const pem = (await client.get(CONFIG_MAPS, ref, { signal })).data?.["ca.crt"] ?? "";
    if (pem === "") throw new MeshError("NO_CLUSTER_CA", `reading ConfigMap ${namespace}/${ref.name}: it has no ca.crt`);
    return pem;
  }

  async function remove(namespace: string, signal: AbortSignal): Promise<Result> {
    const configMap = configMaps.get(CA_CONFIG_MAP, namespace);
    if (configMap === undefined || !isOfManager(configMap)) return {};
    const pods = await client.list(PODS, { namespace, labelSelector: INJECTED_LABEL, signal });
    if (pods.items.length > 0) {
      await publish(namespace, signal);
      return { requeueAfterMs: STILL_USED_MS };
    }
    const { uid = "" } = configMap.metadata;
    const ref = { namespace, name: CA_CONFIG_MAP };
    await client.delete(CONFIG_MAPS, ref, { signal, preconditions: { uid } }).catch((error: unknown) => {
      if (!isStatus(error, "NotFound", "Conflict")) throw error; // somebody else has deleted the ConfigMap
    });
    return {};
  }

  return {
    async reconcile({ namespace, name }, signal) {
      if (name !== CA_CONFIG_MAP || identity.trustPem === "") return {};
      const isUsed = apps.list(namespace).length > 0;
      try {
        return await (isUsed ? publish(namespace, signal) : remove(namespace, signal));
      } catch (error) {
        if (isNamespaceEnding(error)) return {}; // the whole namespace is being deleted
        throw error;
      }
    },
  };
}

function trustData(meshPem: string, clusterPem: string): Record<"mesh.crt" | "ca.crt" | "kubeconfig", string> {
  const clusterText = clusterPem.endsWith("\n") ? clusterPem : `${clusterPem}\n`;
  return { "mesh.crt": meshPem, "ca.crt": meshPem + clusterText, kubeconfig: KUBECONFIG };
}

const KUBECONFIG = `apiVersion: v1
kind: Config
clusters:
  - name: ctrlmesh
    cluster:
      server: https://127.0.0.1:${API_PORT}
      certificate-authority: ${SERVICE_ACCOUNT_DIR}/ca.crt
users:
  - name: service-account
    user:
      tokenFile: ${SERVICE_ACCOUNT_DIR}/token
contexts:
  - name: ctrlmesh
    context:
      cluster: ctrlmesh
      user: service-account
current-context: ctrlmesh
`;

// The operator's clients and calls of the Kubernetes API.
import {
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesListObject,
  Observable,
  type ObservableMiddleware,
  type V1ConfigMap,
  Watch,
} from "@kubernetes/client-node";
import { FOO, type Foo } from "./foo.ts";
import type { FooApi } from "./reconciler.ts";

export interface Kubernetes {
  readonly api: FooApi;
  readonly leases: CoordinationV1Api;
  readonly watch: Watch;
  listFoos(): Promise<KubernetesListObject<Foo>>;
  listConfigMaps(): Promise<KubernetesListObject<V1ConfigMap>>;
}

const CALL_TIMEOUT_MS = 30_000;
const NOT_FOUND = 404;

/** Connects to the cluster of $KUBECONFIG, of ~/.kube/config, or of this pod. */
export function createKubernetes(): Kubernetes {
  const config = new KubeConfig();
  config.loadFromDefault();
  const core = config.makeApiClient(CoreV1Api);
  const custom = config.makeApiClient(CustomObjectsApi);
  const { group, version, plural } = FOO;
  const within = deadline(CALL_TIMEOUT_MS);
  const names = ({ metadata }: V1ConfigMap | Foo) => ({ namespace: metadata?.namespace ?? "", name: metadata?.name ?? "" });
  return {
    leases: config.makeApiClient(CoordinationV1Api),
    watch: new Watch(config),
    listFoos: () => custom.listCustomObjectForAllNamespaces({ group, version, resourcePlural: plural }, within),
    listConfigMaps: () => core.listConfigMapForAllNamespaces({}, within),
    api: {
      async readConfigMap(namespace, name) {
        try {
          return await core.readNamespacedConfigMap({ namespace, name }, within);
        } catch (error) {
          if ((error as { readonly code?: unknown }).code === NOT_FOUND) return undefined;
          throw error;
        }
      },
      async createConfigMap(body) {
        await core.createNamespacedConfigMap({ namespace: names(body).namespace, body }, within);
      },
      async replaceConfigMap(body) {
        await core.replaceNamespacedConfigMap({ ...names(body), body }, within);
      },
      async replaceStatus(foo, status) {
        const body = { ...foo, status };
        await custom.replaceNamespacedCustomObjectStatus({ group, version, plural, ...names(foo), body }, within);
      },
    },
  };
}

/** Options with a timeout for a call; without it the library waits for minutes. */
export function deadline(timeoutMs: number): { middleware: ObservableMiddleware[]; middlewareMergeStrategy: "append" } {
  const bound: ObservableMiddleware = {
    pre(request) {
      request.setSignal(AbortSignal.timeout(timeoutMs));
      return new Observable(Promise.resolve(request));
    },
    post: (response) => new Observable(Promise.resolve(response)),
  };
  return { middleware: [bound], middlewareMergeStrategy: "append" };
}

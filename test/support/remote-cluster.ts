// An API server of another cluster for unit tests: the namespaces that a manager lists and watches there.
import type { KubeConnection } from "../../src/kube/client/connection.ts";
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { Labels } from "../../src/kube/label-selector.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";

export type RemoteCluster = ReturnType<typeof createRemoteCluster>;

export function createRemoteCluster() {
  const kube = createFakeKubeClient();
  /** The connections that are open. */
  const connections: KubeConnection[] = [];
  const remote = {
    kube,
    connections,
    /** An error fails each request. */
    failure: undefined as unknown,
    put: (name: string, labels: Labels = {}) => kube.put(NAMESPACES, { metadata: { name, labels } } as never),
    remove: (name: string) => kube.remove(NAMESPACES, { name }),
    connect(connection: KubeConnection): Pick<KubeClient, "request" | "watch" | "close"> {
      const ending = new AbortController();
      connections.push(connection);
      const check = () => {
        ending.signal.throwIfAborted();
        if (remote.failure !== undefined) throw remote.failure;
      };
      return {
        async request({ signal }) {
          check();
          return kube.list(NAMESPACES, { signal });
        },
        async *watch(resource, options = {}) {
          check();
          const signal = AbortSignal.any([ending.signal, ...(options.signal ? [options.signal] : [])]);
          yield* kube.watch(resource, { ...options, signal });
        },
        async close() {
          ending.abort(new Error("closed"));
          connections.splice(connections.indexOf(connection), 1);
        },
      };
    },
  };
  return remote;
}

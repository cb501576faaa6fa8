// An informer of all Foos behind one pod's proxy, like the operator's own. It shows when a pod has gained and lost all moved
// namespaces.
import { systemClock, systemRandom } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import { FOOS, type MeshPod } from "../support/mesh.ts";

export interface FooInformer {
  /** The number of Foos in the informer, in the namespaces for which `isCounted` is true. */
  count(isCounted: (namespace: string) => boolean): number;
  stop(): Promise<void>;
}

/** Resolves after its first list. @param token the token of its requests */
export async function startFooInformer(pod: MeshPod, token: string): Promise<FooInformer> {
  const client = createKubeClient({
    server: pod.proxyUrl,
    caPem: pod.proxyCaPem,
    token: () => token,
    userAgent: "ctrlmesh-test",
  });
  const log = createLogger({ name: "informer", level: "silent" });
  const informers = createInformers({ client, clock: systemClock, random: systemRandom, log });
  const store = informers.store(FOOS);
  const stopping = new AbortController();
  await informers.start(stopping.signal);
  await store.synced;
  return {
    count: (isCounted) => store.list().reduce((sum, { metadata }) => sum + (isCounted(metadata.namespace ?? "") ? 1 : 0), 0),
    async stop() {
      stopping.abort();
      await informers.stop();
      await client.close();
    },
  };
}

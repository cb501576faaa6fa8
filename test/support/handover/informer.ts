// An informer of all Foos that looks through one pod's proxy, as the operator's own does, so that it can be seen when a pod has got
// everything that it was given, and lost everything that was taken.
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { createLogger } from "../../../src/base/log.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { createInformers } from "../../../src/runtime/informers.ts";
import { FOOS, type MeshPod } from "../mesh.ts";

export interface FooInformer {
  /** Of how many of these namespaces' Foos it knows. */
  count(isCounted: (namespace: string) => boolean): number;
  stop(): Promise<void>;
}

/** Resolves when it has listed. @param token whose rights it looks with */
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

// An informer beside a pod's operator, through the same proxy with the same token. It records every object that the proxy reports as
// deleted. Like any informer it lists again only when its watch cannot continue.
import { readFileSync } from "node:fs";
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "./eventually.ts";
import { FOOS } from "./mesh.ts";
import type { RunnerPod } from "./pod-runner.ts";

export interface InformerProbe {
  readonly pod: string;
  readonly client: KubeClient;
  /** The Foos that the proxy reported as deleted to an informer of the pod. */
  readonly deleted: readonly string[];
  stop(): Promise<void>;
}

/** Calls the API server as the pod does. */
export function clientOfPod({ name, processes: { access } }: RunnerPod): KubeClient {
  if (access === undefined) throw new Error(`pod ${name} does not run`);
  const { server, caFile, token } = access;
  return createKubeClient({ server, caPem: readFileSync(caFile, "utf8"), token: () => token, userAgent: "probe" });
}

/** Watches through the pod's proxy, like its operator's informer, until the pod ends. */
export async function startInformerProbe(pod: RunnerPod): Promise<InformerProbe> {
  const client = clientOfPod(pod);
  const deleted: string[] = [];
  let known = new Set<string>();
  const stopping = new AbortController();
  const { signal } = stopping;
  const nameOf = ({ metadata }: { metadata: { namespace?: string; name?: string } }) => `${metadata.namespace}/${metadata.name}`;
  const watching = (async () => {
    while (!signal.aborted) {
      try {
        const { items, metadata } = await client.list(FOOS, { signal });
        const listed = new Set(items.map(nameOf));
        deleted.push(...[...known].filter((foo) => !listed.has(foo)));
        known = listed;
        const { resourceVersion = "" } = metadata;
        for await (const { type, object } of client.watch(FOOS, { signal, resourceVersion })) {
          if (type === "DELETED") deleted.push(nameOf(object));
          if (type === "ADDED") known.add(nameOf(object));
        }
      } catch {
        // The watch must list again, or the pod has ended.
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  })();
  await eventually(() => known.size > 0);
  return {
    pod: pod.name,
    client,
    deleted,
    async stop() {
      stopping.abort();
      await watching;
      await client.close();
    },
  };
}

// A pod that works in the namespaces of another cluster, for tests: it sends a write to each of them again and again, through its proxy
// and with the same token as all other pods. The audit log of the cluster says who has written, by the User-Agent.
import { Agent, request } from "undici";
import { type ClusterWrite, clusterWrites } from "./cluster-writer.ts";
import type { Kube } from "./kube.ts";
import type { MeshPod } from "./mesh.ts";
import { createProbe } from "./probe.ts";

/** Between two writes of a writer, over all its namespaces: more would fill the cores, and then nobody writes more often. */
const EVERY_MS = 8;

export interface NamespaceWriter {
  /** The status of the last answer in each namespace, or why there is none. */
  readonly last: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** @param namespaces each has the ConfigMap shared */
export async function startNamespaceWriter(
  pod: Pick<MeshPod, "name" | "proxyUrl" | "proxyCaPem" | "token">,
  cluster: { readonly name: string; readonly kube: Kube },
  namespaces: readonly string[],
): Promise<NamespaceWriter> {
  // The operator's first request at home, as every operator makes.
  const home = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: pod.token });
  await home.get("/version");
  await home.close();
  const last: Record<string, string> = {};
  const agent = new Agent({ connect: { ca: pod.proxyCaPem } });
  let isOn = true;
  const write = async (namespace: string): Promise<string> => {
    const path = `/_ctrlmesh/clusters/${cluster.name}/api/v1/namespaces/${namespace}/configmaps/shared`;
    try {
      const { statusCode, body } = await request(`${pod.proxyUrl}${path}`, {
        method: "PATCH",
        dispatcher: agent,
        headers: {
          authorization: `Bearer ${cluster.kube.token}`,
          "content-type": "application/merge-patch+json",
          "user-agent": `writer/${pod.name}`,
        },
        body: JSON.stringify({ data: { by: pod.name, at: String(Date.now()) } }),
      });
      await body.dump();
      return String(statusCode);
    } catch (error) {
      return String(error instanceof Error ? error.message : error);
    }
  };
  const loops = namespaces.map(async (namespace) => {
    while (isOn) {
      last[namespace] = await write(namespace);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS * namespaces.length));
    }
  });
  return {
    last,
    async stop() {
      isOn = false;
      await Promise.all(loops);
      await agent.destroy();
    },
  };
}

/** The successful writes in a namespace, by the audit log of the cluster. */
export function writesIn(kube: Kube, namespace: string, sinceMs = 0): ClusterWrite[] {
  return clusterWrites(kube, namespace).filter(({ receivedMs }) => receivedMs > sinceMs);
}

// A pod that works on other clusters, for tests: it sends a write to each of them again and again, through its forward proxy and
// with the same credentials as all other pods. The audit logs of the clusters say who has written, by the User-Agent.
import { ProxyAgent, request } from "undici";
import type { AuditEvent, Kube } from "./kube.ts";
import { proveHome } from "./kubeconfig-through.ts";
import { microTimeMs } from "./mesh/pod-writes.ts";
import type { MeshPod } from "./mesh.ts";
import { createProbe } from "./probe.ts";

const EVERY_MS = 25;
const PATH = "/api/v1/namespaces/default/configmaps/shared";

export interface ClusterWriter {
  /** The last outcome for each cluster: the status of its API server, or the error of the tunnel. */
  readonly last: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** @param clusters by name. Each needs the ConfigMap shared in the namespace default (prepareCluster) */
export async function startClusterWriter(pod: MeshPod, clusters: Readonly<Record<string, Kube>>): Promise<ClusterWriter> {
  await proveHome(pod);
  const last: Record<string, string> = {};
  let isOn = true;
  const loops = Object.entries(clusters).map(async ([name, kube]) => {
    const agent = new ProxyAgent({ uri: pod.egressUrl, requestTls: { ca: kube.caPem }, proxyTunnel: true });
    while (isOn) {
      last[name] = await write(pod, kube, agent);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
    await agent.destroy();
  });
  return {
    last,
    async stop() {
      isOn = false;
      await Promise.all(loops);
    },
  };
}

async function write(pod: MeshPod, kube: Kube, dispatcher: ProxyAgent): Promise<string> {
  try {
    const { statusCode, body } = await request(`${kube.server}${PATH}`, {
      method: "PATCH",
      dispatcher,
      headers: {
        authorization: `Bearer ${kube.token}`,
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
}

/** Creates what the writers write to. */
export async function prepareCluster(kube: Kube, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  const probe = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token });
  const { status } = await probe.send("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "shared", labels } });
  await probe.close();
  if (status !== 201) throw new Error(`creating the ConfigMap: status ${status}`);
}

export interface ClusterWrite {
  readonly pod: string;
  readonly receivedMs: number;
  readonly answeredMs: number;
}

/** The successful writes of writers in the audit log of a cluster, oldest first. @param namespace default: in all */
export function clusterWrites(kube: Kube, namespace?: string): ClusterWrite[] {
  return kube.audit().flatMap((event: AuditEvent) => {
    const [, pod] = /^writer\/(.*)$/.exec(event.userAgent ?? "") ?? [];
    if (namespace !== undefined && event.objectRef?.namespace !== namespace) return [];
    if (pod === undefined || event.verb !== "patch" || (event.responseStatus?.code ?? 0) >= 300) return [];
    const [receivedMs, answeredMs] = [event.requestReceivedTimestamp, event.stageTimestamp].map(microTimeMs);
    return [{ pod, receivedMs: receivedMs ?? 0, answeredMs: answeredMs ?? 0 }];
  });
}

/** The pods that wrote one after the other, and each pair of pods of different subsets that wrote at the same time. */
export function turnsOf(writes: readonly ClusterWrite[], subsetOf: Readonly<Record<string, string>>) {
  const turns: string[] = [];
  const overlaps: string[] = [];
  let openUntil: ClusterWrite | undefined;
  for (const write of writes.toSorted((a, b) => a.receivedMs - b.receivedMs)) {
    const subset = subsetOf[write.pod] ?? "?";
    if (turns.at(-1) !== subset) turns.push(subset);
    if (openUntil !== undefined && subsetOf[openUntil.pod] !== subset && openUntil.answeredMs > write.receivedMs) {
      overlaps.push(`${openUntil.pod} until ${openUntil.answeredMs}, ${write.pod} from ${write.receivedMs}`);
    }
    if (openUntil === undefined || write.answeredMs > openUntil.answeredMs) openUntil = write;
  }
  return { turns, overlaps };
}

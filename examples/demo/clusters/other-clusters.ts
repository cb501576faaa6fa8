// The other clusters of the act: API servers as processes, and what the operator's pods send to them through their proxies. Every pod
// has an administrator's credentials for all of them.
import { readFileSync } from "node:fs";
import { Agent, type Dispatcher, ProxyAgent, request } from "undici";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { CLUSTERS_PATH } from "../../../src/mesh/ownership/clusters.ts";
import { eventually } from "../../../test/support/eventually.ts";
import type { DemoPod } from "../pods.ts";
import type { ApiServer } from "../processes.ts";
import type { World } from "../world.ts";

export interface OtherCluster {
  readonly name: string;
  readonly apiServer: ApiServer;
  readonly auditLog: string;
}

const NAME = "shared";
const PATIENCE_MS = 60_000;

/** What the pods write to again and again. */
export interface Target {
  /** For the table. */
  readonly name: string;
  readonly cluster: OtherCluster;
  readonly namespace: string;
}

/** Starts an API server, with a ConfigMap in each namespace that the pods write to. @param namespaces with their labels; "default" exists */
export async function startCluster(
  name: string,
  world: Pick<World, "startApiServer">,
  namespaces: Readonly<Record<string, Readonly<Record<string, string>>>> = { default: {} },
): Promise<OtherCluster> {
  const cluster = { name, ...(await world.startApiServer(name)) };
  await withClient(cluster, async (client) => {
    for (const [namespace, labels] of Object.entries(namespaces)) {
      if (namespace !== "default") await client.create(NAMESPACES, { metadata: { name: namespace, labels } });
      await eventually(() => client.create(CONFIG_MAPS, { metadata: { namespace, name: NAME } }), PATIENCE_MS);
    }
  });
  return cluster;
}

export async function labelNamespace(
  cluster: OtherCluster,
  name: string,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  await withClient(cluster, (client) => client.patch(NAMESPACES, { name }, { type: "merge", body: { metadata: { labels } } }));
}

async function withClient({ apiServer }: OtherCluster, work: (client: KubeClient) => Promise<unknown>): Promise<void> {
  const caPem = readFileSync(apiServer.ca, "utf8");
  const client = createKubeClient({ server: apiServer.server, caPem, token: () => apiServer.token, userAgent: "ctrlmesh-demo" });
  await work(client);
  await client.close();
}

/** Writes as the pod, through a tunnel of its own. Returns the status, or why there was no tunnel. */
export function writeByTunnel(pod: DemoPod, target: Target): Promise<string> {
  const { apiServer } = target.cluster;
  const requestTls = { ca: readFileSync(apiServer.ca, "utf8") };
  return write(pod, target, apiServer.server, new ProxyAgent({ uri: pod.proxy.egressUrl ?? "", requestTls, proxyTunnel: true }));
}

/** Writes as the pod, by the path under which its proxy serves the cluster. Returns the status, and what a refusal says. */
export function writeByPath(pod: DemoPod, target: Target): Promise<string> {
  const { url, ca } = pod.proxy;
  const agent = new Agent({ connect: { ca: readFileSync(ca, "utf8") } });
  return write(pod, target, `${url}${CLUSTERS_PATH}${target.cluster.name}`, agent);
}

async function write({ name }: DemoPod, { cluster, namespace }: Target, base: string, dispatcher: Dispatcher): Promise<string> {
  try {
    const { statusCode, body } = await request(`${base}/api/v1/namespaces/${namespace}/configmaps/${NAME}`, {
      method: "PATCH",
      dispatcher,
      headers: {
        authorization: `Bearer ${cluster.apiServer.token}`,
        "content-type": "application/merge-patch+json",
        "user-agent": `pod/${name}`,
      },
      body: JSON.stringify({ data: { by: name } }),
    });
    const { message = "" } = (await body.json()) as { readonly message?: string };
    return [String(statusCode), ...(message === "" ? [] : [message])].join(": ");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await dispatcher.destroy();
  }
}

export interface ClusterWrite {
  readonly pod: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The pods' successful writes in the audit log of the cluster, in the order in which they began. */
export function writesTo({ cluster, namespace }: Target): ClusterWrite[] {
  const lines = readFileSync(cluster.auditLog, "utf8").split("\n").slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as AuditLine);
  return events
    .flatMap(({ userAgent = "", responseStatus, objectRef, requestReceivedTimestamp, stageTimestamp }) => {
      const [, pod] = /^pod\/(.*)$/.exec(userAgent) ?? [];
      if (pod === undefined || responseStatus?.code !== 200 || objectRef?.namespace !== namespace) return [];
      return [{ pod, fromMs: Date.parse(requestReceivedTimestamp), untilMs: Date.parse(stageTimestamp) }];
    })
    .sort((a, b) => a.fromMs - b.fromMs);
}

interface AuditLine {
  readonly userAgent?: string;
  readonly responseStatus?: { readonly code: number };
  readonly objectRef?: { readonly namespace?: string };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

// The other clusters of the act: API servers as processes, and what the operator's pods send to them through their proxies. Every pod
// has an administrator's credentials for all of them.
import { readFileSync } from "node:fs";
import { ProxyAgent, request } from "undici";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
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

/** Starts an API server, with the ConfigMap that the pods write to. */
export async function startCluster(name: string, world: Pick<World, "startApiServer">): Promise<OtherCluster> {
  const { apiServer, auditLog } = await world.startApiServer(name);
  const caPem = readFileSync(apiServer.ca, "utf8");
  const client = createKubeClient({ server: apiServer.server, caPem, token: () => apiServer.token, userAgent: "ctrlmesh-demo" });
  await eventually(() => client.create(CONFIG_MAPS, { metadata: { namespace: "default", name: NAME } }), PATIENCE_MS);
  await client.close();
  return { name, apiServer, auditLog };
}

/** Writes as the pod, through a tunnel of its own. Returns the status, or why there was no tunnel. */
export async function writeAs({ name, proxy }: DemoPod, { apiServer }: OtherCluster): Promise<string> {
  const agent = new ProxyAgent({
    uri: proxy.egressUrl ?? "",
    requestTls: { ca: readFileSync(apiServer.ca, "utf8") },
    proxyTunnel: true,
  });
  try {
    const { statusCode, body } = await request(`${apiServer.server}/api/v1/namespaces/default/configmaps/${NAME}`, {
      method: "PATCH",
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${apiServer.token}`,
        "content-type": "application/merge-patch+json",
        "user-agent": `pod/${name}`,
      },
      body: JSON.stringify({ data: { by: name } }),
    });
    await body.dump();
    return String(statusCode);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await agent.destroy();
  }
}

export interface ClusterWrite {
  readonly pod: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The pods' successful writes in the audit log of a cluster, in the order in which they began. */
export function writesTo({ auditLog }: OtherCluster): ClusterWrite[] {
  const lines = readFileSync(auditLog, "utf8").split("\n").slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as AuditLine);
  return events
    .flatMap(({ userAgent = "", responseStatus, requestReceivedTimestamp, stageTimestamp }) => {
      const [, pod] = /^pod\/(.*)$/.exec(userAgent) ?? [];
      if (pod === undefined || responseStatus?.code !== 200) return [];
      return [{ pod, fromMs: Date.parse(requestReceivedTimestamp), untilMs: Date.parse(stageTimestamp) }];
    })
    .sort((a, b) => a.fromMs - b.fromMs);
}

interface AuditLine {
  readonly userAgent?: string;
  readonly responseStatus?: { readonly code: number };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
}

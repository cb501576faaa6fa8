// The servers of the manager, which every replica runs: snapshots for proxies, health and metrics, and the webhooks.
import { MESH_CLUSTERS } from "../api/resources.ts";
import { createHealthServer } from "../base/health-server.ts";
import { metadataOnly, type Resource } from "../kube/client/resource.ts";
import { NAMESPACES } from "../kube/client/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { addWebhooks } from "./admission/add.ts";
import { LEASE_NAME, type ReplicaLeadership } from "./context/leadership.ts";
import type { Base, PodWatches } from "./create-base.ts";
import { addIdentity } from "./identity/add.ts";
import { injectionSettings } from "./injection/injection.ts";
import { POLICY_KINDS } from "./policies/add.ts";
import { createProxyJudge } from "./server/judge-proxy.ts";
import { createMeshServer } from "./server/mesh-server.ts";

export type Servers = ReturnType<typeof createServers>;

export function createServers(
  base: Base,
  { pods, followed }: PodWatches,
  { isLeader, leaderElsewhere, epochs }: ReplicaLeadership,
) {
  const { config, apps, registry, clock, log, metricsRegistry } = base;
  // By a URL the API server reaches the webhooks under another name than the Service's.
  const { webhookUrl } = config;
  const urlNames = webhookUrl === "" ? [] : [new URL(webhookUrl).hostname.replace(/^\[|\]$/g, "")];
  const serverNames = [...config.serverNames, ...urlNames];
  const mesh =
    config.identity === "mesh"
      ? addIdentity({ ...config, ...base, isLeader, leaseName: LEASE_NAME, apps, pods: [pods, followed], serverNames })
      : undefined;
  const namespaces = base.informers.store(metadataOnly(NAMESPACES));
  const snapshots = createMeshServer({
    registry,
    leaderElsewhere,
    leadership: epochs,
    clock,
    log,
    listen: config.grpcListen,
    ...(mesh && { security: mesh.security }),
    judge: createProxyJudge({ pods, apps, leaderElsewhere, ...mesh?.security }),
    namespaces: () => namespaces.list().flatMap(({ metadata }) => metadata.name ?? []),
  });
  const health = createHealthServer({
    listen: config.healthListen,
    registry: metricsRegistry,
    notReady() {
      if (mesh !== undefined && mesh.identity.serving === undefined)
        return `no mesh CA yet: ${mesh.identity.problem ?? "not read"}`;
      return apps.hasSynced ? undefined : "the apps have not been listed yet";
    },
  });
  const webhooks =
    mesh && config.webhookListen
      ? addWebhooks({
          ...base,
          listen: config.webhookListen,
          identity: mesh.identity,
          facts: mesh.facts,
          warnsOfMoves: config.warnOfMoves,
          clientCaFile: config.webhookClientCa,
          settings: (cluster) => injectionSettings(config, cluster),
        })
      : undefined;
  const listed = <T extends KubeObject>(resource: Resource<T>) => {
    const store = base.informers.store(resource);
    return { kind: resource.kind, list: () => store.list() };
  };
  const policies = POLICY_KINDS.map(({ resource }) => listed(resource));
  const kinds = [...base.sources.map(({ resource }) => listed(resource)), ...policies, listed(MESH_CLUSTERS)];
  const clusters = () => base.informers.store(MESH_CLUSTERS).list();
  base.observed.readFrom({ registry, apps, policies, kinds, clusters, isLeader, clock });
  return { mesh, snapshots, health, webhooks };
}

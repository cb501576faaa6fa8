// Which MeshClusters of a namespace are accepted. Pure. Invariant: no two have a server or an identity in common, since one cluster
// could then have two owners. The oldest object is accepted, and the status of the others names it.
import { z } from "zod";
import {
  certificatesIn,
  DEFAULT_DRAIN_SECONDS,
  type DiscoveryObject,
  type MeshCluster,
  readDiscoveryObjects,
  readTerminate,
  serverOf,
  serverPathOf,
  validateMeshCluster,
} from "../../api/mesh-cluster.ts";
import { formatProblem } from "../../api/problems.ts";
import { remember } from "../../base/remember.ts";
import { MAX_CLUSTER_TABLES } from "../../mesh/contract/cluster-tables.ts";
import { MAX_CLUSTERS } from "../../mesh/contract/route-type.ts";
import type { ClusterRoute, ClusterUpstream, HomeObject } from "../../mesh/ownership/clusters.ts";
import { clusterStatusFacts } from "./cluster-status-facts.ts";
import type { ClusterFacts } from "./compile/route-spec.ts";

export interface AcceptedCluster
  extends ClusterFacts,
    Pick<ClusterRoute, "servers" | "drainMs" | "objects" | "isOpen" | "upstream"> {
  /** Name of the Secret with a kubeconfig for the cluster's namespaces. Absent: they are not read, so with an upstream the cluster is closed. */
  readonly kubeconfigSecret?: string | undefined;
}

interface Accepting extends AcceptedCluster {
  readonly servers: string[];
  objects?: HomeObject[];
  isOpen?: true;
  drainMs: number;
  upstream?: ClusterUpstream;
  kubeconfigSecret?: string;
}

export interface AcceptedClusters {
  /** By name, ascending. */
  readonly accepted: readonly AcceptedCluster[];
  /** By name: why an object is not accepted, or what is wrong with an object of which only the valid servers are accepted. */
  readonly refused: ReadonlyMap<string, Refusal>;
}

interface Refusal {
  readonly reason: "Invalid" | "AlreadyKnown" | "TooMany";
  readonly message: string;
}

/** @param objects of one namespace; the present schema may not allow them */
export function acceptClusters(objects: readonly MeshCluster[]): AcceptedClusters {
  const known = new Map<string, Accepting>();
  /** By host:port, the oldest cluster there. Behind a gateway may be several whose namespaces are divided. */
  const atHost = new Map<string, Accepting>();
  const accepted: Accepting[] = [];
  const refused = new Map<string, Refusal>();
  let divided = 0;
  const live = objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined).sort(byAge);
  for (const [at, object] of live.entries()) {
    const { name = "", labels = {} } = object.metadata;
    // Refused objects count too: their servers belong to older ones, and a route has to stay within its bound.
    if (at >= MAX_CLUSTERS) {
      const message = `a namespace has at most ${MAX_CLUSTERS} MeshClusters: every pod can reach this one`;
      refused.set(name, { reason: "TooMany", message });
      continue;
    }
    const { problems, spec, hosts, paths } = readCluster(object);
    if (problems !== undefined) refused.set(name, { reason: "Invalid", message: problems });
    const { servers = [], clusterID, interception, terminate, drainSeconds = DEFAULT_DRAIN_SECONDS } = spec;
    const isDivided = interception === "Terminate" || terminate !== undefined;
    if (hosts.length === 0) continue;
    const identities = [...paths.map((path) => `server ${path}`), ...(clusterID === undefined ? [] : [`clusterID ${clusterID}`])];
    const takenHost = hosts.find((host) => atHost.has(host) && !(isDivided && atHost.get(host)?.upstream));
    const taken = takenHost === undefined ? identities.find((identity) => known.has(identity)) : `server ${takenHost}`;
    const older = atHost.get(takenHost ?? "") ?? known.get(taken ?? "");
    const cluster: Accepting = older ?? { name, labels, ...clusterStatusFacts(object.status), servers: [], drainMs: 0 };
    if (older === undefined && interception === "None") cluster.isOpen = true;
    if (older === undefined && isDivided) {
      cluster.upstream = upstreamOf(servers, paths, terminate);
      if (divided < MAX_CLUSTER_TABLES) {
        if (terminate !== undefined) cluster.kubeconfigSecret = terminate.kubeconfigSecret;
      } else refused.set(name, TOO_MANY_DIVIDED);
      divided++;
    }
    if (older === undefined) accepted.push(cluster);
    else if (problems === undefined) {
      const hasPath = takenHost !== undefined && !paths.includes(takenHost);
      const message = `${taken} is that of MeshCluster ${older.name}: ${hasPath ? BEHIND_ONE : ONE_EACH}`;
      refused.set(name, { reason: "AlreadyKnown", message });
    }
    // A server of a refused object must not become open to every pod: it belongs to the older object's cluster.
    cluster.servers.push(...hosts.filter((host) => older === undefined || !atHost.has(host)));
    cluster.servers.sort();
    for (const host of hosts) if (!atHost.has(host)) atHost.set(host, cluster);
    // With Terminate every pod finds the cluster.
    const sharedObject = takeObjects(cluster, isDivided ? [] : (spec.discoveredBy ?? []), known);
    if (sharedObject !== undefined && !refused.has(name)) refused.set(name, { reason: "AlreadyKnown", message: sharedObject });
    // Nobody waits for requests to a cluster that every pod may reach.
    if (!cluster.isOpen) cluster.drainMs = Math.max(cluster.drainMs, drainSeconds * 1_000);
    for (const identity of identities) if (!known.has(identity)) known.set(identity, cluster);
  }
  return { accepted: accepted.sort((a, b) => (a.name < b.name ? -1 : 1)), refused };
}

/** What one object says. A namespace has up to 500, which are accepted anew whenever one of them changes. */
const readCluster = remember((object: MeshCluster) => {
  const checked = validateMeshCluster(object);
  const problems = checked.ok ? undefined : checked.problems.map(formatProblem).join("; ");
  const spec: Partial<MeshCluster["spec"]> = checked.ok ? checked.value.spec : readableSpec(object);
  const [hosts, paths] = [serverOf, serverPathOf].map((read) => new Set(spec.servers?.flatMap((url) => read(url) ?? [])));
  return { problems, spec, hosts: [...(hosts ?? [])].sort(), paths: [...(paths ?? [])].sort() };
});

/**
 * Gives the cluster the objects that no older cluster has.
 * @returns what is wrong with the others
 */
function takeObjects(
  cluster: Accepting,
  discoveredBy: readonly DiscoveryObject[],
  known: Map<string, Accepting>,
): string | undefined {
  let problem: string | undefined;
  for (const { apiGroup: group = "", resource, name } of discoveredBy) {
    const identity = `object ${group}/${resource}/${name}`;
    const owner = known.get(identity);
    if (owner === undefined) {
      cluster.objects = [...(cluster.objects ?? []), { group, resource, name }];
      known.set(identity, cluster);
    } else if (owner !== cluster)
      problem ??= `spec.discoveredBy: ${resource} "${name}" is that of MeshCluster ${owner.name}: name each object in one MeshCluster`;
  }
  return problem;
}

const ONE_EACH = "keep one MeshCluster for each cluster";
const BEHIND_ONE = `${ONE_EACH}; those behind one host and port, with paths of their own, all need interception: Terminate`;

const TOO_MANY_DIVIDED: Refusal = {
  reason: "TooMany",
  message: `a namespace has at most ${MAX_CLUSTER_TABLES} MeshClusters with interception: Terminate: no pod can reach this one`,
};

/** How the proxies reach a cluster whose namespaces are divided. @param servers one of them is valid */
function upstreamOf(
  servers: readonly string[],
  paths: readonly string[],
  terminate: MeshCluster["spec"]["terminate"],
): ClusterUpstream {
  const { certificateAuthorityData, tlsServerName } = terminate ?? {};
  return {
    url: servers.find((url) => serverOf(url) !== undefined) ?? "",
    paths,
    ...(certificateAuthorityData !== undefined && { ca: certificatesIn(certificateAuthorityData) }),
    ...(tlsServerName !== undefined && { serverName: tlsServerName }),
  };
}

/**
 * What is valid of an object that is not: a mistake in one field must not open the others to every pod, and a cluster whose namespaces
 * are divided must not become one that a subset owns whole.
 */
function readableSpec({ spec }: { readonly spec?: unknown }): Partial<MeshCluster["spec"]> {
  const { servers, discoveredBy, interception, terminate } = READABLE.parse(spec ?? {});
  const section = readTerminate(terminate);
  return {
    servers: servers.filter((server) => typeof server === "string"),
    discoveredBy: readDiscoveryObjects(discoveredBy),
    ...((interception === "Terminate" || terminate !== undefined) && { interception: "Terminate" }),
    ...(section !== undefined && { terminate: section }),
  };
}

const LIST = z.array(z.unknown()).catch([]);
const READABLE = z
  .object({ servers: LIST, discoveredBy: LIST, interception: z.unknown().optional(), terminate: z.unknown().optional() })
  .catch({ servers: [], discoveredBy: [], interception: undefined, terminate: undefined });

function byAge({ metadata: a }: MeshCluster, { metadata: b }: MeshCluster): number {
  const [first, second] = [a, b].map(({ creationTimestamp = "", name = "" }) => `${creationTimestamp} ${name}`);
  return (first ?? "") < (second ?? "") ? -1 : 1;
}

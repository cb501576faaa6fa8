// Which MeshClusters of a namespace are accepted. Pure. Invariant: no two have a server or an identity in common, since one cluster
// could then have two owners. The oldest object is accepted, and the status of the others names it.
import { z } from "zod";
import {
  certificatesIn,
  DEFAULT_DRAIN_SECONDS,
  type DiscoveryObject,
  drainSecondsSchema,
  type MeshCluster,
  readDiscoveryObjects,
  readTerminate,
  serverOf,
  serverPathOf,
  validateMeshCluster,
} from "../../api/mesh-cluster.ts";
import { formatProblem } from "../../api/problems.ts";
import { fieldsOf } from "../../api/rule.ts";
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

/** What the accepted objects have, each of which belongs to one cluster. */
interface Taken {
  readonly byIdentity: Map<string, Accepting>;
  /** By host:port, the oldest cluster there. Behind a gateway may be several whose namespaces are divided. */
  readonly byHost: Map<string, Accepting>;
}

/** @param objects of one namespace; the present schema may not allow them */
export function acceptClusters(objects: readonly MeshCluster[]): AcceptedClusters {
  const taken: Taken = { byIdentity: new Map(), byHost: new Map() };
  const accepted: Accepting[] = [];
  const refused = new Map<string, Refusal>();
  let divided = 0;
  const live = objects.filter(({ metadata }) => metadata.deletionTimestamp === undefined).sort(byAge);
  for (const [at, object] of live.entries()) {
    const { name = "" } = object.metadata;
    // Refused objects count too: their servers belong to older ones, and a route has to stay within its bound.
    if (at >= MAX_CLUSTERS) {
      const message = `a namespace has at most ${MAX_CLUSTERS} MeshClusters: every pod can reach this one`;
      refused.set(name, { reason: "TooMany", message });
      continue;
    }
    const read = readCluster(object);
    if (read.problems !== undefined) refused.set(name, { reason: "Invalid", message: read.problems });
    if (read.hosts.length === 0) continue;
    const older = olderCluster(read, taken);
    const hasTable = read.isDivided && divided < MAX_CLUSTER_TABLES;
    const cluster = older?.cluster ?? newCluster(object, read, hasTable);
    if (older === undefined) {
      accepted.push(cluster);
      if (read.isDivided) divided++;
      if (read.isDivided && !hasTable) refused.set(name, TOO_MANY_DIVIDED);
    } else if (read.problems === undefined) refused.set(name, { reason: "AlreadyKnown", message: older.message });
    const sharedObject = addToCluster(cluster, read, taken);
    if (sharedObject !== undefined && !refused.has(name)) refused.set(name, { reason: "AlreadyKnown", message: sharedObject });
  }
  return { accepted: accepted.sort((a, b) => (a.name < b.name ? -1 : 1)), refused };
}

/** What one object says. A namespace has up to 500, which are accepted anew whenever one of them changes. */
const readCluster = remember((object: MeshCluster) => {
  const checked = validateMeshCluster(object);
  const problems = checked.ok ? undefined : checked.problems.map(formatProblem).join("; ");
  const spec: Partial<MeshCluster["spec"]> = checked.ok ? checked.value.spec : readableSpec(object);
  const { servers = [], clusterID, interception, terminate } = spec;
  const valuesOf = (read: (url: string) => string | undefined) => [...new Set(servers.flatMap((url) => read(url) ?? []))].sort();
  const paths = valuesOf(serverPathOf);
  const identities = [...paths.map((path) => `server ${path}`), ...(clusterID === undefined ? [] : [`clusterID ${clusterID}`])];
  const isDivided = interception === "Terminate" || terminate !== undefined;
  return { problems, spec, hosts: valuesOf(serverOf), paths, identities, isDivided };
});

type ReadCluster = ReturnType<typeof readCluster>;

/** The oldest cluster with a server or an identity of this object, and what to tell the user. */
function olderCluster({ hosts, paths, identities, isDivided }: ReadCluster, { byHost, byIdentity }: Taken) {
  const host = hosts.find((each) => byHost.has(each) && !(isDivided && byHost.get(each)?.upstream));
  const shared = host === undefined ? identities.find((identity) => byIdentity.has(identity)) : `server ${host}`;
  const cluster = byHost.get(host ?? "") ?? byIdentity.get(shared ?? "");
  if (cluster === undefined) return undefined;
  const advice = host !== undefined && !paths.includes(host) ? BEHIND_ONE : ONE_EACH;
  return { cluster, message: `${shared} is that of MeshCluster ${cluster.name}: ${advice}` };
}

/** @param hasTable its namespaces are divided, and routes have room for them */
function newCluster({ metadata, status }: MeshCluster, { spec, paths, isDivided }: ReadCluster, hasTable: boolean): Accepting {
  const { name = "", labels = {} } = metadata;
  const { servers = [], interception, terminate } = spec;
  return {
    name,
    labels,
    ...clusterStatusFacts(status),
    servers: [],
    drainMs: 0,
    ...(interception === "None" && { isOpen: true as const }),
    ...(isDivided && { upstream: upstreamOf(servers, paths, terminate) }),
    ...(hasTable && terminate !== undefined && { kubeconfigSecret: terminate.kubeconfigSecret }),
  };
}

/**
 * Gives the cluster what the object has and no older cluster has.
 * @returns what is wrong with its objects of discoveredBy
 */
function addToCluster(cluster: Accepting, read: ReadCluster, { byHost, byIdentity }: Taken): string | undefined {
  const { spec, hosts, identities, isDivided } = read;
  // A new cluster has all its servers, also behind a gateway. A server of a refused object must not become open to every pod: it belongs to
  // the older object's cluster.
  const added = cluster.servers.length === 0 ? hosts : hosts.filter((host) => !byHost.has(host));
  cluster.servers.push(...added);
  cluster.servers.sort();
  for (const host of hosts) if (!byHost.has(host)) byHost.set(host, cluster);
  // With Terminate every pod finds the cluster.
  const problem = takeObjects(cluster, isDivided ? [] : (spec.discoveredBy ?? []), byIdentity);
  // Nobody waits for requests to a cluster that every pod may reach.
  const { drainSeconds = DEFAULT_DRAIN_SECONDS } = spec;
  if (!cluster.isOpen) cluster.drainMs = Math.max(cluster.drainMs, drainSeconds * 1_000);
  for (const identity of identities) if (!byIdentity.has(identity)) byIdentity.set(identity, cluster);
  return problem;
}

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
 * are divided must not become one that a subset owns whole. An identity that is not valid still is that of another object with the same.
 */
function readableSpec({ spec }: { readonly spec?: unknown }): Partial<MeshCluster["spec"]> {
  const { servers, discoveredBy, clusterID, interception, terminate, drainSeconds } = READABLE.parse(fieldsOf(spec));
  const section = readTerminate(terminate);
  const isDivided = interception === "Terminate" || terminate !== undefined;
  return {
    servers: servers.filter((server) => typeof server === "string"),
    discoveredBy: readDiscoveryObjects(discoveredBy),
    ...(clusterID !== "" && { clusterID }),
    ...(drainSeconds !== undefined && { drainSeconds }),
    ...(isDivided ? { interception: "Terminate" } : interception === "None" && { interception }),
    ...(section !== undefined && { terminate: section }),
  };
}

const LIST = z.array(z.unknown()).catch([]);
const UNKNOWN = z.unknown().optional();
/** Each field by itself, so that a mistake in one costs no other. */
const READABLE = z.object({
  servers: LIST,
  discoveredBy: LIST,
  clusterID: z.string().catch(""),
  interception: UNKNOWN,
  terminate: UNKNOWN,
  drainSeconds: drainSecondsSchema.optional().catch(undefined),
});

function byAge({ metadata: a }: MeshCluster, { metadata: b }: MeshCluster): number {
  const [first, second] = [a, b].map(({ creationTimestamp = "", name = "" }) => `${creationTimestamp} ${name}`);
  return (first ?? "") < (second ?? "") ? -1 : 1;
}

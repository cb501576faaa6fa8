// The kind MeshCluster: another cluster that operators work on, so that an app can divide several clusters between its subsets.
// With Tunnel the mesh knows only the servers of a cluster. With Terminate the proxies decrypt the requests, and divide its namespaces.
import { optional, z } from "zod";
import { canonicalHost, isAddress } from "../base/host-name.ts";
import type { Immutable } from "../base/json.ts";
import { joinPem, readCertificates } from "../base/pem.ts";
import { formatAddress } from "../base/settings.ts";
import { conditionsSchema } from "./conditions.ts";
import { discoveryObjectSchema } from "./discovery-object.ts";
import { type Check, listMap, withChecks } from "./extensions.ts";
import { atomicList, countSchema, int, nonEmptyList, textUpTo } from "./fields.ts";
import { AGE_COLUMN, conditionColumns, defineKind, KRUISE_GROUP, objectMetaSchema, textColumn } from "./kind.ts";
import { dnsSubdomainSchema } from "./names.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { itemsOf, noDuplicates, withRules } from "./rule.ts";

/** Enough for a public name, a private name, and addresses of both. */
export const MAX_SERVERS = 8;
export const MAX_CLUSTER_OWNERS = 32;
/** The most clusters of a namespace with `interception: Terminate`: each pod gets the owners inside all of them. */
export const MAX_TERMINATE_CLUSTERS = 32;
/** A few certificates, of 1 to 2 KB each. A route has those of all such clusters (MAX_CLAIM_BYTES). */
export const MAX_CA_CHARS = 16 * 1024;
/** The most subsets of an app that a status lists. */
export const MAX_COUNTED_SUBSETS = 32;
/** Enough for a Secret, a ClusterProfile and two other objects. */
const MAX_DISCOVERY_OBJECTS = 4;
export const DEFAULT_DRAIN_SECONDS = 60;

const HTTPS_URL = /^https:\/\/[A-Za-z0-9._:[\]-]+(\/[^\s?#]*)?$/;
const HOST_LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** The URL of an API server. Its host is in ASCII, since two hosts that look alike could otherwise be two servers. */
export const clusterServerSchema = textUpTo(512)
  .regex(HTTPS_URL, {
    error:
      'must be a URL as in a kubeconfig, such as "https://eu-1.example.com:6443": its host is one name in ASCII, or an address',
  })
  .refine((url) => !HTTPS_URL.test(url) || hasServer(url), { error: "has no valid host and port" });

function hasServer(url: string): boolean {
  const host = canonicalHost(URL.parse(url)?.hostname ?? "") ?? "";
  const isHost = isAddress(host) || host.split(".").every((label) => HOST_LABEL.test(label));
  return isHost && serverOf(url)?.endsWith(":0") === false;
}

/** In ASCII, since two identities that look alike could otherwise be two clusters. */
export const clusterIDSchema = textUpTo(253).regex(/^[!-~]+$/, { error: "must be in ASCII, without spaces, and not empty" });

export const drainSecondsSchema = int(1, 3_600);

const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const terminateSchema = z.strictObject({
  certificateAuthorityData: optional(
    textUpTo(MAX_CA_CHARS).refine(hasCertificates, { error: "must be the base64 text of PEM certificates, as in a kubeconfig" }),
  ).describe(
    "Certificates of the CAs that may have signed the certificate of the first of servers: PEM in base64, as in a kubeconfig. The default is the CAs of the system.",
  ),
  tlsServerName: optional(textUpTo(253).regex(HOST_NAME, { error: "must be a host name" })).describe(
    "Name in that certificate. The default is the host of the URL.",
  ),
  kubeconfigSecret: dnsSubdomainSchema.describe(
    "Name of a Secret in this namespace with a kubeconfig for this cluster, in the key kubeconfig, value or config. The manager lists and watches the cluster's namespaces with it, and needs nothing else there. Bind a Role with the verb get on this one Secret to the manager's ServiceAccount. The kubeconfig may have inline data only: certificate-authority-data, tls-server-name, and token or client-certificate-data and client-key-data. Its server must be one of servers.",
  ),
});

/** What the TypeScript checks and the API server's rules say of the fields together. */
const TERMINATE_CHECKS: readonly Check[] = [
  {
    rule: "!has(self.terminate) || has(self.interception) && self.interception == 'Terminate'",
    message: "only with interception: Terminate",
    fieldPath: ".terminate",
    holds: ({ terminate, interception }) => terminate === undefined || interception === "Terminate",
  },
  {
    rule: "!has(self.interception) || self.interception != 'Terminate' || has(self.terminate)",
    message: "interception: Terminate needs terminate, with the name of a Secret in kubeconfigSecret",
    fieldPath: ".interception",
    holds: ({ terminate, interception }) => interception !== "Terminate" || terminate !== undefined,
  },
  {
    rule: "!has(self.discoveredBy) || self.discoveredBy.size() == 0 || !has(self.interception) || self.interception != 'Terminate'",
    message: "not with interception: Terminate: all pods find the cluster, and see in it only what their subset owns",
    fieldPath: ".discoveredBy",
    holds: ({ discoveredBy, interception }) => interception !== "Terminate" || itemsOf(discoveredBy).length === 0,
  },
];

const plainSpecSchema = z.strictObject({
  servers: withRules(nonEmptyList(clusterServerSchema, MAX_SERVERS), noDuplicates).describe(
    "URLs of the cluster's API server, as in kubeconfigs: each name and each address under which operators reach it. Requests to a server that no MeshCluster lists are not limited. Two URLs with the same host and port are the same server, but with Terminate the path counts too: each cluster behind a gateway can have a MeshCluster.",
  ),
  clusterID: optional(clusterIDSchema).describe(
    "Identity of the cluster: the value of the property clusterset.k8s.io/cluster-id of its ClusterProfile, or the UID of its namespace kube-system. Of two MeshClusters of a namespace with the same identity, the younger is refused, and its servers belong to the older. Otherwise the cluster could have two owners.",
  ),
  interception: optional(z.enum(["Tunnel", "Terminate", "None"]))
    .meta({ default: "Tunnel" })
    .describe(
      "How the proxies keep pods from a cluster that their subset does not own. Tunnel: they refuse connections to its servers, and hide the objects of discoveredBy. Terminate: they serve the operator's requests to the cluster at a path of their own and divide its namespaces between the subsets, and every other connection to its servers is refused. None: they only hide these objects, so nothing stops an operator that finds the cluster in another way.",
    ),
  terminate: optional(terminateSchema).describe(
    `How the proxies connect to the first of servers, whose path they put before the path of each request, and how the manager reads the cluster's namespaces. Required with interception: Terminate. A namespace has at most ${MAX_TERMINATE_CLUSTERS} such clusters; the youngest beyond that are closed to every pod.`,
  ),
  discoveredBy: atomicList(discoveryObjectSchema, MAX_DISCOVERY_OBJECTS).describe(
    "Objects of the home cluster by which operators find this cluster, for example a Secret with its kubeconfig, or its ClusterProfile. They are in the namespace of the MeshCluster, or cluster-scoped. Only pods of the subset that owns the cluster can read and write them, as far as the rules of the app allow it. So a pod begins to work on a cluster when its subset gets the cluster, and stops when its subset loses it.",
  ),
  drainSeconds: optional(drainSecondsSchema)
    .meta({ default: DEFAULT_DRAIN_SECONDS })
    .describe(
      "How long the cluster's API server may work on a request that it has accepted, in seconds: its --request-timeout. When the cluster moves, the next owner waits for this time.",
    ),
});

const specSchema = withChecks(plainSpecSchema, ...TERMINATE_CHECKS);

const ownerSchema = z.object({
  app: textUpTo(253).describe("The app: a VirtualApp, or a family of ShardingConfigs, of this namespace."),
  subset: textUpTo(253).describe("The subset that owns the cluster; `default` is the default subset."),
});

const namespacesSchema = z.object({
  app: textUpTo(253).describe("The app, as in owners."),
  total: countSchema.describe("Number of the cluster's namespaces that the app divides."),
  owned: optional(
    z
      .array(
        z.object({
          subset: textUpTo(253).describe("The subset; `default` is the default subset."),
          count: countSchema.describe("Number of namespaces that it owns, or gets when they have moved."),
        }),
      )
      .max(MAX_COUNTED_SUBSETS)
      .meta(listMap("subset")),
  ).describe(`The subsets that own namespaces. At most ${MAX_COUNTED_SUBSETS} are listed, those with the most namespaces first.`),
});

const statusSchema = z.object({
  observedGeneration: optional(z.int().min(0)).describe("Generation of the object that this status is about."),
  owners: optional(z.array(ownerSchema).max(MAX_CLUSTER_OWNERS).meta(listMap("app"))).describe(
    `The owner in each app that divides the cluster; while the cluster moves, the next owner. At most ${MAX_CLUSTER_OWNERS} apps are listed. With interception: Terminate, only families of ShardingConfigs are.`,
  ),
  namespaces: optional(z.array(namespacesSchema).max(MAX_CLUSTER_OWNERS).meta(listMap("app"))).describe(
    "With interception: Terminate, how each app divides the cluster's namespaces.",
  ),
  earliestExpiry: optional(
    z.object({
      of: textUpTo(64).describe(
        "ServerCertificate: that of the cluster's API server. CertificateAuthority: the CA in certificateAuthorityData. KubeconfigCertificateAuthority, KubeconfigClientCertificate, KubeconfigToken: what is in the kubeconfig of kubeconfigSecret.",
      ),
      time: textUpTo(32).describe("When it ends, in RFC 3339."),
    }),
  ).describe(
    "With interception: Terminate, what ends first of the certificates and the token by which the mesh reaches the cluster. The credentials of the operator are not known.",
  ),
  waitingOn: atomicList(textUpTo(253), 16).describe(
    "Pods that may still send requests to the cluster though they do not own it.",
  ),
  conditions: optional(conditionsSchema).describe(
    "Ready: True if Identified and Enforced are True, or if interception is None and no pod finds a cluster of another subset. With interception: Terminate also NamespacesWatched has to be True: the manager knows the cluster's namespaces. Identified: no older MeshCluster of the namespace has one of its servers, its clusterID or an object of its discoveredBy. Enforced: only pods of the owner can write to the cluster through the mesh. Decided: False while the cluster keeps its owner because a PlacementDecision is missing that a rule names. CredentialsValid: with interception: Terminate, False when a certificate or token for the cluster ends within 14 days, or within a tenth of its lifetime if that is less. Reachable: False while a pod of the owner cannot connect to the cluster. Ready does not depend on these three.",
  ),
});

const READY = conditionColumns("Ready");

export const meshClusterKind = defineKind({
  group: KRUISE_GROUP,
  kind: "MeshCluster",
  plural: "meshclusters",
  shortName: "mcl",
  description:
    "MeshCluster is another cluster that operators of its namespace work on. A VirtualApp or a ShardingConfig gives it to one subset, and pods of other subsets cannot reach the cluster through their proxies.",
  columns: [
    textColumn("Owner", ".status.owners[0].subset", "The subset that owns the cluster, in the first app that divides it."),
    READY.status,
    READY.reason,
    textColumn("Waiting-For", ".status.waitingOn[0]", "A pod that may still send requests though it does not own the cluster."),
    textColumn("Expires", ".status.earliestExpiry.time", "When the first certificate or token for the cluster ends."),
    AGE_COLUMN,
    READY.message,
  ],
  metadata: objectMetaSchema,
  spec: specSchema.describe("The cluster's API server."),
  status: statusSchema,
});

export type MeshCluster = Immutable<z.output<typeof meshClusterKind.schema>>;
export type MeshClusterStatus = Immutable<z.output<typeof statusSchema>>;

/** An object of `spec.discoveredBy`. */
export type DiscoveryObject = NonNullable<MeshCluster["spec"]["discoveredBy"]>[number];

export function validateMeshCluster(object: unknown): ValidationResult<MeshCluster> {
  return validate(meshClusterKind.schema, object);
}

/** The section `terminate` of a spec that may have other problems; undefined if the section is not valid. */
export function readTerminate(section: unknown): MeshCluster["spec"]["terminate"] {
  return terminateSchema.safeParse(section).data;
}

/** The PEM text of `certificateAuthorityData`, without what is not a certificate. */
export function certificatesIn(base64: string): string {
  return joinPem(Buffer.from(base64, "base64").toString("latin1"));
}

function hasCertificates(base64: string): boolean {
  if (base64.length > MAX_CA_CHARS || !BASE64.test(base64.replaceAll(/\s/g, ""))) return false;
  try {
    return readCertificates(Buffer.from(base64, "base64").toString("latin1"), "certificateAuthorityData").length > 0;
  } catch {
    return false;
  }
}

/** The objects in a list that may not be valid, without those that cannot be read. */
export function readDiscoveryObjects(list: readonly unknown[]): DiscoveryObject[] {
  return list.flatMap((each) => discoveryObjectSchema.safeParse(each).data ?? []);
}

/**
 * host:port and path of a URL, in one form for all spellings that a gateway may read alike; undefined without a host. Paths that differ
 * in the case of letters alone are one.
 */
export function serverPathOf(url: string): string | undefined {
  const host = serverOf(url);
  const segments = URL.parse(url)?.pathname.split("/") ?? [];
  return host && [host, ...segments.map(plainSegment).filter((segment) => segment !== "")].join("/").toLowerCase();
}

/** Without parameters, and as a gateway reads it that decodes more than once. */
function plainSegment(segment: string): string {
  return decoded(segment).replace(/;.*/s, "");
}

function decoded(segment: string): string {
  try {
    const once = decodeURIComponent(segment);
    return once === segment ? segment : decoded(once);
  } catch {
    return segment;
  }
}

/** host:port of a URL, in the form in which the proxy compares servers; undefined if it has none. */
export function serverOf(url: string): string | undefined {
  const parsed = URL.parse(url);
  const host = parsed === null || parsed.username !== "" ? undefined : canonicalHost(parsed.hostname);
  if (host === undefined || parsed?.protocol !== "https:") return undefined;
  return formatAddress({ host, port: Number(parsed.port || "443") });
}

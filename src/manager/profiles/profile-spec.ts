// What a MeshCluster gets from a ClusterProfile. Pure. Invariant: a profile that cannot be used as a whole gives no spec, so its
// MeshCluster stays as it is: fewer servers would open the cluster to every pod.
import { type ClusterProfile, identityOfProfile, type ProfileServer, serversOfProfile } from "../../api/cluster-profile.ts";
import { clusterServerSchema, MAX_SERVERS, serverOf } from "../../api/mesh-cluster.ts";
import { remember } from "../../base/remember.ts";

export interface ProfileSpec {
  readonly servers: readonly string[];
  readonly clusterID?: string | undefined;
}

export interface ProfileReading {
  /** Undefined if no MeshCluster can be made from the profile. */
  readonly spec?: ProfileSpec | undefined;
  /** What is wrong, for an Event. The reason is one word. */
  readonly problem?:
    | { readonly reason: "NoServers" | "ServerNotUsable" | "TooManyServers" | "LabelsTooLong"; readonly message: string }
    | undefined;
}

/** The API server limits labels only by the size of the object, and every manager keeps the labels of all MeshClusters in memory. */
export const MAX_LABEL_CHARS = 16_384;
/** A status has room for tens of thousands of servers, and checking each of them would stop the manager for a part of a second. */
const MAX_CHECKED = 64;
/** Of clusterID in a MeshCluster. */
const MAX_ID_CHARS = 253;
const SHOWN_FIELDS = 3;

/** Each object is read once: a namespace may have hundreds, and a change of one looks at all. */
export const readProfile = remember((profile: ClusterProfile): ProfileReading => {
  const labels = JSON.stringify(profile.metadata.labels ?? {});
  if (labels.length > MAX_LABEL_CHARS) {
    const message = `its labels have ${labels.length} characters, and a MeshCluster takes at most ${MAX_LABEL_CHARS}`;
    return { problem: { reason: "LabelsTooLong", message } };
  }
  const named = differentServers(profile);
  if (named.length > MAX_CHECKED) return { problem: tooManyServers(named.length) };
  const byServer = new Map<string, string>();
  const refused: (ProfileServer & { readonly why: string })[] = [];
  for (const server of named) {
    const checked = clusterServerSchema.safeParse(server.value);
    const host = checked.success ? serverOf(checked.data) : undefined;
    if (host === undefined) refused.push({ ...server, why: checked.error?.issues[0]?.message ?? "has no valid host and port" });
    else if (!byServer.has(host)) byServer.set(host, checked.data ?? "");
  }
  if (byServer.size > MAX_SERVERS) return { problem: tooManyServers(byServer.size) };
  const problem = problemOf(refused, byServer.size);
  if (byServer.size === 0) return { problem };
  const clusterID = identityOfProfile(profile);
  const isIdUsable = clusterID !== undefined && clusterID.length <= MAX_ID_CHARS;
  return { spec: { servers: [...byServer.values()], ...(isIdUsable && { clusterID }) }, problem };
});

/** Each server at its first place. */
function differentServers(profile: ClusterProfile): ProfileServer[] {
  const known = new Map<unknown, ProfileServer>();
  for (const server of serversOfProfile(profile)) if (!known.has(server.value)) known.set(server.value, server);
  return [...known.values()];
}

function tooManyServers(count: number): ProfileReading["problem"] {
  const message = `its providers name ${count} servers in status, and a MeshCluster has at most ${MAX_SERVERS}`;
  return { reason: "TooManyServers", message };
}

function problemOf(
  refused: readonly { readonly field: string; readonly why: string }[],
  usable: number,
): ProfileReading["problem"] {
  const [first] = refused;
  if (first === undefined) {
    if (usable > 0) return undefined;
    const message = "status.accessProviders has no cluster.server, so the manager does not make or change the MeshCluster";
    return { reason: "NoServers", message };
  }
  const shown = refused.slice(0, SHOWN_FIELDS).map(({ field, why }) => `${field} ${why}`);
  const more = refused.length > SHOWN_FIELDS ? [`and ${refused.length - SHOWN_FIELDS} more`] : [];
  const effect = usable > 0 ? "every pod can reach these servers" : "the manager does not make or change the MeshCluster";
  return { reason: "ServerNotUsable", message: `${[...shown, ...more].join("; ")}: ${effect}` };
}

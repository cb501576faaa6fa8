// What a MeshCluster gets from a ClusterProfile. Pure. Invariant: a profile that cannot be used as a whole gives no spec, so its
// MeshCluster stays as it is: fewer servers would open the cluster to every pod.
import { type ClusterProfile, identityOfProfile, type ProfileServer, serversOfProfile } from "../../api/cluster-profile.ts";
import { clusterIDSchema, clusterServerSchema, MAX_SERVERS, serverOf } from "../../api/mesh-cluster.ts";
import { type Problem, validate } from "../../api/problems.ts";
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
    | {
        readonly reason: "NoServers" | "ServerNotUsable" | "TooManyServers" | "LabelsTooLong" | "IdentityNotUsable";
        readonly message: string;
      }
    | undefined;
}

/** The API server limits labels only by the size of the object, and every manager keeps the labels of all MeshClusters in memory. */
export const MAX_LABEL_CHARS = 16_384;
/** A status has room for tens of thousands of servers, and checking each of them would stop the manager for a part of a second. */
const MAX_CHECKED = 64;
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
    const checked = validate(clusterServerSchema, server.value);
    const host = checked.ok ? serverOf(checked.value) : undefined;
    if (!checked.ok) refused.push({ ...server, why: messageOf(checked.problems) });
    else if (host !== undefined && !byServer.has(host)) byServer.set(host, checked.value);
  }
  if (byServer.size > MAX_SERVERS) return { problem: tooManyServers(byServer.size) };
  const problem = problemOf(refused, byServer.size);
  if (byServer.size === 0) return { problem };
  const servers = [...byServer.values()];
  const identity = identityOfProfile(profile);
  if (identity === undefined) return { spec: { servers }, problem };
  const checkedID = validate(clusterIDSchema, identity);
  if (checkedID.ok) return { spec: { servers, clusterID: checkedID.value }, problem };
  return { spec: { servers }, problem: problem ?? identityNotUsable(messageOf(checkedID.problems)) };
});

/** The identity is left out, since the MeshCluster with its servers is what keeps the cluster from other pods. */
function identityNotUsable(why: string): ProfileReading["problem"] {
  const message = `status.properties: the identity of the cluster ${why}; without it, nobody notices if another MeshCluster has other servers of this cluster`;
  return { reason: "IdentityNotUsable", message };
}

function messageOf([first]: readonly Problem[]): string {
  return first?.message ?? "is not valid";
}

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

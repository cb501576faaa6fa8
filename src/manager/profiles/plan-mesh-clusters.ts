// Which MeshClusters of a namespace are made or changed so that each ClusterProfile has one. Pure. Invariants: a MeshCluster that the
// manager did not make is never changed; nothing is deleted, since that would open a cluster to every pod; a patch names only the
// fields that come from the profile.
import { type ClusterProfile, INVENTORY_GROUP } from "../../api/cluster-profile.ts";
import { type MeshCluster, meshClusterKind } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { controllerRef, controllerRefOf } from "../../kube/client/owner.ts";
import { apiVersionOf, type Resource } from "../../kube/client/resource.ts";
import type { KubeObject, ObjectMeta } from "../../kube/types.ts";
import { MAX_CLUSTERS } from "../../mesh/contract/route-type.ts";
import { createMergePatch } from "../../runtime/merge-patch.ts";
import { type ProfileSpec, readProfile } from "./profile-spec.ts";

export interface ProfileNotice {
  readonly profile: ClusterProfile;
  readonly reason: string;
  readonly message: string;
}

export interface MeshClusterPlan {
  readonly created: readonly { readonly profile: ClusterProfile; readonly object: MeshCluster }[];
  readonly changed: readonly { readonly profile: ClusterProfile; readonly stored: MeshCluster; readonly patch: object }[];
  /** At most one about each profile. */
  readonly notices: readonly ProfileNotice[];
}

/** A cluster manager writes the status of a profile after the profile, so a new one without servers is normal. */
const NEW_MS = 60_000;

/** @param resource the ClusterProfiles in the version in which they were read */
export function planMeshClusters(
  profiles: readonly ClusterProfile[],
  meshClusters: readonly MeshCluster[],
  resource: Resource<ClusterProfile>,
  nowMs: number,
): MeshClusterPlan {
  const stored = new Map(meshClusters.map((each) => [each.metadata.name ?? "", each]));
  const created: MeshClusterPlan["created"][number][] = [];
  const changed: MeshClusterPlan["changed"][number][] = [];
  const notices: ProfileNotice[] = [];
  for (const profile of profiles.filter(({ metadata }) => metadata.deletionTimestamp === undefined).sort(byAge)) {
    const { name = "" } = profile.metadata;
    const before = stored.get(name);
    if (before !== undefined && !isMadeFrom(before, profile)) {
      const message = `MeshCluster ${name} was not made from this ClusterProfile, so the manager does not change it`;
      notices.push({ profile, reason: "MeshClusterExists", message });
      continue;
    }
    const { spec, problem } = readProfile(profile);
    const isExpected = problem?.reason === "NoServers" && before === undefined && isNew(profile, nowMs);
    if (problem !== undefined && !isExpected) notices.push({ profile, ...problem });
    if (spec === undefined) continue;
    if (before === undefined) {
      if (stored.size + created.length < MAX_CLUSTERS) created.push({ profile, object: newMeshCluster(profile, spec, resource) });
      else {
        const message = `a namespace has at most ${MAX_CLUSTERS} MeshClusters: every pod can reach this cluster`;
        notices.push({ profile, reason: "TooManyMeshClusters", message });
      }
    } else if (before.metadata.deletionTimestamp === undefined) {
      const patch = changesOf(before, profile, spec, resource);
      if (patch !== undefined) changed.push({ profile, stored: before, patch });
    }
  }
  return { created, changed, notices: [...new Map(notices.map((notice) => [notice.profile, notice])).values()] };
}

/** True if the manager has made the object from this profile, or from an earlier one of the same name. */
export function isMadeFrom(object: KubeObject, { metadata }: ClusterProfile): boolean {
  return nameOfProfile(object) === metadata.name;
}

/** The name of the ClusterProfile from which the manager has made the object; undefined: it has not made it. */
export function nameOfProfile(object: KubeObject): string | undefined {
  const owner = controllerRefOf(object);
  const isProfile = owner?.kind === "ClusterProfile" && owner.apiVersion.startsWith(`${INVENTORY_GROUP}/`);
  return isProfile ? owner.name : undefined;
}

// With discoveredBy, an operator that finds its clusters by profiles sees only those of its subset. Later only users change
// discoveredBy, like drainSeconds: an operator may need all profiles.
function newMeshCluster(profile: ClusterProfile, spec: ProfileSpec, resource: Resource<ClusterProfile>): MeshCluster {
  const { namespace = "", name = "" } = profile.metadata;
  return {
    apiVersion: apiVersionOf(MESH_CLUSTERS) as MeshCluster["apiVersion"],
    kind: meshClusterKind.kind,
    metadata: { namespace, name, ...ofProfile(profile, resource, []) },
    spec: {
      ...spec,
      servers: [...spec.servers],
      discoveredBy: [{ apiGroup: resource.group, resource: resource.resource, name }],
    },
  };
}

/** The patch; undefined if the MeshCluster is as the profile says. A clusterID stays when the profile loses the property. */
function changesOf(
  { metadata, spec }: MeshCluster,
  profile: ClusterProfile,
  { servers, clusterID = spec.clusterID }: ProfileSpec,
  resource: Resource<ClusterProfile>,
): object | undefined {
  const { labels = {}, ownerReferences = [] } = metadata;
  const before = { metadata: { labels, ownerReferences }, spec: { servers: spec.servers, clusterID: spec.clusterID } };
  const after = { metadata: ofProfile(profile, resource, ownerReferences), spec: { servers, clusterID } };
  return createMergePatch(before, after) as object | undefined;
}

function ofProfile(
  profile: ClusterProfile,
  resource: Resource<ClusterProfile>,
  ownerReferences: NonNullable<ObjectMeta["ownerReferences"]>,
) {
  const others = ownerReferences.filter(({ controller }) => controller !== true);
  return {
    labels: profile.metadata.labels ?? {},
    ownerReferences: [controllerRef(resource, profile), ...others].map((each) => ({ ...each })),
  };
}

function isNew({ metadata: { creationTimestamp = "" } }: ClusterProfile, nowMs: number): boolean {
  return nowMs - Date.parse(creationTimestamp) < NEW_MS;
}

function byAge({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  const [first, second] = [a, b].map(({ creationTimestamp = "", name = "" }) => `${creationTimestamp} ${name}`);
  return (first ?? "") < (second ?? "") ? -1 : 1;
}

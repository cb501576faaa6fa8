// ClusterProfile, the kind of SIG Multicluster's inventory (KEP-4322), with the fields that the project reads. Other programs write
// these objects, so nothing is assumed about their status.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { fieldsOf, itemsOf } from "./rule.ts";

export interface ClusterProfile extends KubeObject {
  readonly status?: unknown;
}

export const INVENTORY_GROUP = "multicluster.x-k8s.io";

/** v1alpha1 first: in v1alpha2 the API server omits status.credentialProviders, which may be the only one with servers. */
export const PROFILE_VERSIONS = ["v1alpha1", "v1alpha2"] as const;

export type ProfileVersion = (typeof PROFILE_VERSIONS)[number];

export function clusterProfiles(version: ProfileVersion): Resource<ClusterProfile> {
  return { group: INVENTORY_GROUP, version, resource: "clusterprofiles", kind: "ClusterProfile", namespaced: true };
}

export interface ProfileServer {
  /** Where the value is: `status.accessProviders[0].cluster.server`. */
  readonly field: string;
  readonly value: unknown;
}

const PROVIDER_LISTS = ["accessProviders", "credentialProviders"] as const;

/** The server of each provider. A provider without a cluster has none. */
export function serversOfProfile({ status }: ClusterProfile): ProfileServer[] {
  return PROVIDER_LISTS.flatMap((list) =>
    itemsOf(fieldsOf(status)[list]).flatMap((provider, at) => {
      const { server } = fieldsOf(fieldsOf(provider).cluster);
      return server === undefined ? [] : [{ field: `status.${list}[${at}].cluster.server`, value: server }];
    }),
  );
}

/** The property of KEP-4322, and then that of KEP-2149 (About API). */
const ID_PROPERTIES = ["clusterset.k8s.io/cluster-id", "cluster.clusterset.k8s.io"] as const;

/** The identity of the cluster; undefined if the profile has none. */
export function identityOfProfile({ status }: ClusterProfile): string | undefined {
  const properties = itemsOf(fieldsOf(status).properties).map(fieldsOf);
  const values = ID_PROPERTIES.map((name) => properties.find((property) => property.name === name)?.value);
  return values.find((value) => typeof value === "string" && value !== "") as string | undefined;
}

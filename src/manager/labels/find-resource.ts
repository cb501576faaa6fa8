// Finds the kind and the preferred version of a resource, by the API server's discovery documents.
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { GroupResource } from "../../kube/types.ts";

interface ApiGroup {
  readonly preferredVersion?: { readonly version?: string };
}

interface ApiResources {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

interface ApiService {
  readonly spec?: { readonly service?: object };
}

/** Undefined if the API server does not serve the resource in the preferred version of its group. */
export async function findResource(
  client: Pick<KubeClient, "request">,
  { group, resource }: GroupResource,
  signal: AbortSignal,
): Promise<Resource | undefined> {
  const read = (path: string) => client.request({ method: "GET", path, signal, doing: "reading discovery" });
  try {
    const found = group === "" ? undefined : ((await read(`/apis/${group}`)) as ApiGroup | undefined);
    const version = group === "" ? "v1" : (found?.preferredVersion?.version ?? "");
    if (version === "") return undefined;
    const { resources = [] } = ((await read(group === "" ? "/api/v1" : `/apis/${group}/${version}`)) ?? {}) as ApiResources;
    const served = resources.find(({ name }) => name === resource);
    return served && { group, version, resource, kind: served.kind, namespaced: served.namespaced };
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

/** True if another API server serves the resource. It does not ask the policies of this one. */
export async function isAggregated(
  client: Pick<KubeClient, "request">,
  { group, version }: Resource,
  signal: AbortSignal,
): Promise<boolean> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${version}.${group}`;
  const service = (await client.request({ method: "GET", path, signal, doing: "reading an APIService" })) as
    | ApiService
    | undefined;
  return service?.spec?.service !== undefined;
}

// The paths under which the proxy serves other clusters: /_ctrlmesh/clusters/NAME/ and the path at the cluster. Pure.
import { StatusError } from "../../kube/status.ts";
import { CLUSTERS_PATH } from "../../mesh/ownership/clusters.ts";

/** All paths that the proxy serves itself. */
export const PROXY_PATH = "/_ctrlmesh/";
const BELOW = /^([a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)(\/[^?]*)?(\?.*)?$/;

export interface ClusterPath {
  readonly cluster: string;
  /** What is sent to the cluster: path and query. */
  readonly target: string;
}

/**
 * Undefined for a request to the API server at home.
 * @throws StatusError NotFound for another path under /_ctrlmesh/, which the API server at home does not have
 */
export function clusterPathOf(target: string): ClusterPath | undefined {
  if (!target.startsWith(PROXY_PATH)) return undefined;
  const below = target.startsWith(CLUSTERS_PATH) ? target.slice(CLUSTERS_PATH.length) : "";
  const [, cluster, path = "/", query = ""] = BELOW.exec(below) ?? [];
  if (cluster === undefined)
    throw new StatusError("NotFound", "ctrlmesh: below /_ctrlmesh/ the proxy serves only /_ctrlmesh/clusters/NAME/");
  return { cluster, target: path + query };
}

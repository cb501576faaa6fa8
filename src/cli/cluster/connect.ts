// Chooses how to reach the cluster: by kubectl where it is on the PATH, else directly.
import { isMeshError } from "../../base/errors.ts";
import type { Cluster, ClusterOptions } from "../frame/cluster.ts";
import { kubectlCluster } from "./kubectl.ts";

export async function connect(options: ClusterOptions): Promise<Cluster> {
  try {
    return await kubectlCluster(options);
  } catch (error) {
    if (!isMeshError(error, "NO_KUBECTL")) throw error;
    // Loaded only here: it takes 0.2 s, which `version --client` should not need.
    const { directCluster } = await import("./direct.ts");
    return directCluster(options);
  }
}

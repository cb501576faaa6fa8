// The cluster by our own client: in a pod, where there is no kubectl.
import { processEnv } from "../../base/env.ts";
import { MeshError } from "../../base/errors.ts";
import { VERSION } from "../../base/version.ts";
import { createKubeClient } from "../../kube/client/client.ts";
import { StatusError } from "../../kube/status.ts";
import { loadConnection } from "../../runtime/kubeconfig.ts";
import type { Cluster, ClusterOptions } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";

export async function directCluster({ kubeconfig, context, as, requestTimeoutMs }: ClusterOptions): Promise<Cluster> {
  if (as !== undefined) throw failure("--as needs kubectl on the PATH");
  const userAgent = `ctrlmesh/${VERSION}`;
  const named = { ...(kubeconfig !== undefined && { kubeconfig }), ...(context !== undefined && { context }) };
  const client = createKubeClient(await loadConnection({ env: processEnv(), userAgent, ...named }));
  const options = () => ({ signal: AbortSignal.timeout(requestTimeoutMs) });
  return {
    namespace: "default",
    get: (resource, ref) => client.get(resource, ref, options()).catch(rethrow),
    async list(resource, namespace, labelSelector) {
      const where = { ...(namespace !== undefined && { namespace }), ...(labelSelector !== undefined && { labelSelector }) };
      const list = await client.list(resource, { ...options(), ...where }).catch(rethrow);
      return list.items;
    },
    async patch(resource, ref, patch, dryRun) {
      await client
        .patch(resource, ref, { type: "merge", body: patch }, { ...options(), ...(dryRun && { dryRun: true }) })
        .catch(rethrow);
    },
    forward: async () => {
      throw failure("asking a sidecar needs kubectl on the PATH: it forwards the port of the pod");
    },
  };
}

function rethrow(error: unknown): never {
  if (error instanceof StatusError && error.status.code === 404)
    throw new MeshError("NOT_FOUND", error.message, { cause: error });
  throw error;
}

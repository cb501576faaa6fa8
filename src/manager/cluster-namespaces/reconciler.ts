// Watches the namespaces of the clusters of one namespace that its apps divide: reads their Secrets, again and again, since a get is all
// that the manager may do with them.
import { isDeepStrictEqual } from "node:util";
import { backoffMs, type Random } from "../../base/clock.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { formatRequest, type Reconciler } from "../../runtime/reconciler.ts";
import type { AcceptedCluster, AcceptedClusters } from "../apps/accept-clusters.ts";
import { type Apps, dividesClusters } from "../apps/app.ts";
import { readTenantKubeconfig } from "./read-kubeconfig.ts";
import { readKubeconfigSecret } from "./read-secret.ts";
import type { WatchedClusters } from "./watched-clusters.ts";

interface ClusterNamespacesOptions {
  readonly client: Pick<KubeClient, "get">;
  readonly apps: Pick<Apps, "list">;
  readonly clusters: { readonly of: (namespace: string) => AcceptedClusters };
  readonly watched: Pick<WatchedClusters, "use" | "refuse" | "keep" | "look">;
  readonly random: Random;
}

/** How late a new token in a Secret is used. */
const READ_AGAIN_MS = 30_000;
const BACKOFF = { baseMs: 2_000, maxMs: READ_AGAIN_MS };

export function createClusterNamespacesReconciler(options: ClusterNamespacesOptions): Reconciler {
  const { client, apps, clusters, watched, random } = options;
  /** What each watch was made from, so that it is made anew only for another text or other servers. */
  const sources = new Map<string, { readonly text: string; readonly servers: readonly string[] }>();
  /** By namespace: the failures in a row. */
  const failures = new Map<string, number>();

  /** Returns false if it is to be tried again soon. */
  async function refresh(namespace: string, cluster: AcceptedCluster, signal: AbortSignal): Promise<boolean> {
    const { name, upstream, kubeconfigSecret = "" } = cluster;
    const servers = upstream?.paths ?? [];
    const of = { namespace, name };
    const key = formatRequest(of);
    const answer = await readKubeconfigSecret(client, { namespace, name: kubeconfigSecret }, signal);
    if (signal.aborted) return false;
    if (answer.kind === "none" || (answer.kind === "failed" && !sources.has(key))) {
      sources.delete(key);
      watched.refuse(of, { reason: "SecretNotReadable", message: answer.problem });
      return false;
    }
    watched.look(of);
    if (answer.kind === "failed") return false;
    const source = { text: answer.text, servers };
    if (isDeepStrictEqual(sources.get(key), source)) return true;
    sources.set(key, source);
    const kubeconfig = readTenantKubeconfig(answer.text, servers);
    if (kubeconfig.ok) {
      const isUsed = watched.use(of, kubeconfig.connection);
      if (!isUsed) sources.delete(key);
      return isUsed;
    }
    const message = `the kubeconfig in Secret ${kubeconfigSecret}: ${kubeconfig.problem}`;
    watched.refuse(of, { reason: "KubeconfigRefused", message });
    return true;
  }

  return {
    async reconcile({ name: namespace }, signal) {
      const divides = apps.list(namespace).some(dividesClusters);
      const wanted = divides
        ? clusters.of(namespace).accepted.filter(({ kubeconfigSecret }) => kubeconfigSecret !== undefined)
        : [];
      const names = new Set(wanted.map(({ name }) => formatRequest({ namespace, name })));
      for (const key of sources.keys()) if (key.startsWith(`${namespace}/`) && !names.has(key)) sources.delete(key);
      watched.keep(
        namespace,
        wanted.map(({ name }) => name),
      );
      if (wanted.length === 0) {
        failures.delete(namespace);
        return {};
      }
      const results = await Promise.all(wanted.map((cluster) => refresh(namespace, cluster, signal)));
      const failed = results.every((isDone) => isDone) ? 0 : (failures.get(namespace) ?? 0) + 1;
      failures.set(namespace, failed);
      return { requeueAfterMs: failed === 0 ? READ_AGAIN_MS : backoffMs(failed - 1, BACKOFF, random) };
    },
  };
}

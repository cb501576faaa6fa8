// Reads whether the controllers of some pods (ReplicaSets, StatefulSets, all kinds with a scale subresource)
// have as many pods as they ask for. It is read only when fewer pods are ready than before a restart and no
// new pod is starting. A workload that was scaled down or deleted meanwhile never has as many pods again.

import { dnsLabelSchema, dnsSubdomainSchema } from "../../api/names.ts";
import { controllerRefOf } from "../../kube/client/owner.ts";
import { objectPath } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";

const TIMEOUT_MS = 5_000;

interface Owner {
  readonly namespace: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/**
 * "yes" if the controllers of the pods `of` have as many of `pods` as their scales ask for. "unknown" if
 * there is no controller, or one has no readable scale. "no" even if the API server does not answer: the
 * caller asks again later.
 * @throws the signal's reason if it fires
 */
export async function haveAllWanted(
  client: Pick<KubeClient, "request">,
  of: readonly KubeObject[],
  pods: readonly KubeObject[],
  signal: AbortSignal,
): Promise<"yes" | "no" | "unknown"> {
  const paths = [...new Set(of.map(scalePathOf))];
  const counts = pods.map(scalePathOf);
  const answers = await Promise.all(
    paths.map(async (path) => {
      const wanted = path === undefined ? undefined : await readReplicas(client, path, signal);
      if (wanted === undefined) return "unknown";
      if (wanted === "no answer") return "no";
      return counts.filter((other) => other === path).length === wanted ? "yes" : "no";
    }),
  );
  if (answers.includes("no")) return "no";
  return answers.length === 0 || answers.includes("unknown") ? "unknown" : "yes";
}

function scalePathOf(pod: KubeObject): string | undefined {
  const owner = controllerOf(pod);
  return owner && scalePath(owner);
}

function controllerOf(pod: KubeObject): Owner | undefined {
  const owner = controllerRefOf(pod);
  return owner && { namespace: pod.metadata.namespace ?? "", ...owner };
}

// The plural is guessed from the kind. If the guess is wrong, the API server answers 404. The creator of a
// pod writes the owner reference, and the API server does not check its names. The result is undefined for an
// invalid name, so that a crafted name cannot lead to another path.
function scalePath({ namespace, apiVersion, kind, name }: Owner): string | undefined {
  const [version = "", group, ...more] = apiVersion.split("/").reverse();
  const plural = `${kind.toLowerCase()}s`;
  const isObject = isLabel(version) && isLabel(kind.toLowerCase()) && isSubdomain(name) && more.length === 0;
  if (!isObject || (group !== undefined && !isSubdomain(group))) return undefined;
  return objectPath({ group: group ?? "", version, resource: plural, kind, namespaced: true }, { namespace, name }, "scale");
}

const isLabel = (text: string) => dnsLabelSchema.safeParse(text).success;
const isSubdomain = (text: string) => dnsSubdomainSchema.safeParse(text).success;

async function readReplicas(
  client: Pick<KubeClient, "request">,
  path: string,
  signal: AbortSignal,
): Promise<number | "no answer" | undefined> {
  try {
    const scale = await client.request({
      method: "GET",
      path,
      signal,
      timeoutMs: TIMEOUT_MS,
      doing: "reading a workload's scale",
    });
    return (scale as { readonly spec?: { readonly replicas?: number } } | undefined)?.spec?.replicas ?? 0;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof StatusError)) return "no answer";
    const { code, details } = error.status;
    if (code === 429 || code >= 500) return "no answer"; // the answer does not describe the workload
    // A 404 with a name means that the object is missing. Without a name, the kind or its subresource is
    // missing.
    return code === 404 && details?.name !== undefined ? 0 : undefined; // undefined: no such subresource, or the manager may not read it
  }
}

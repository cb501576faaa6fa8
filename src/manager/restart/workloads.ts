// Reads whether the controllers of pods (all kinds with a scale subresource) have as many pods as they ask
// for. A workload that was scaled down or deleted during a restart never has as many ready pods again.
import { dnsLabelSchema, dnsSubdomainSchema } from "../../api/names.ts";
import { controllerRefOf } from "../../kube/client/owner.ts";
import { objectPath } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";

const TIMEOUT_MS = 5_000;

/**
 * Whether the controllers of the pods `of` have as many of `pods` as their scales ask for. "unknown" if one
 * has no controller or no readable scale; "no" if the API server does not answer.
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

// The plural is guessed from the kind. If it is wrong, the answer is 404. Owner references are not checked by
// the API server, and a crafted name could lead to another path, so an invalid name has no path.
function scalePathOf(pod: KubeObject): string | undefined {
  const owner = controllerRefOf(pod);
  if (owner === undefined) return undefined;
  const { apiVersion, kind, name } = owner;
  const [version = "", group, ...more] = apiVersion.split("/").reverse();
  const plural = `${kind.toLowerCase()}s`;
  const isObject = isLabel(version) && isLabel(kind.toLowerCase()) && isSubdomain(name) && more.length === 0;
  if (!isObject || (group !== undefined && !isSubdomain(group))) return undefined;
  const resource = { group: group ?? "", version, resource: plural, kind, namespaced: true };
  return objectPath(resource, { namespace: pod.metadata.namespace ?? "", name }, "scale");
}

const isLabel = (text: string) => dnsLabelSchema.safeParse(text).success;
const isSubdomain = (text: string) => dnsSubdomainSchema.safeParse(text).success;

async function readReplicas(
  client: Pick<KubeClient, "request">,
  path: string,
  signal: AbortSignal,
): Promise<number | "no answer" | undefined> {
  try {
    const doing = "reading a workload's scale";
    const scale = await client.request({ method: "GET", path, signal, timeoutMs: TIMEOUT_MS, doing });
    return (scale as { readonly spec?: { readonly replicas?: number } } | undefined)?.spec?.replicas ?? 0;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof StatusError)) return "no answer";
    const { code, details } = error.status;
    if (code === 429 || code >= 500) return "no answer"; // the answer does not describe the workload
    // A 404 with a name: the object is missing. Without one: its kind or the subresource is missing.
    return code === 404 && details?.name !== undefined ? 0 : undefined;
  }
}

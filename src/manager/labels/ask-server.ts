// Asks the API server before a resource is labelled: how it serves the resource, and what the manager may do.
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { GroupResource } from "../../kube/types.ts";
import { policyName } from "./label-policy.ts";
import { isNamespaces } from "./right-labels.ts";

type Client = Pick<KubeClient, "request">;

interface ApiGroup {
  readonly preferredVersion?: { readonly version?: string };
}

interface ApiResources {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

/** Undefined if the API server does not serve the resource in the preferred version of its group. */
export async function findResource(
  client: Client,
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

/** True if another API server serves the resource. That server does not apply the policies of this one. */
export async function isAggregated(client: Client, { group, version }: Resource, signal: AbortSignal): Promise<boolean> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${version}.${group}`;
  const service = await client.request({ method: "GET", path, signal, doing: "reading an APIService" });
  return (service as { readonly spec?: { readonly service?: object } } | undefined)?.spec?.service !== undefined;
}

/** The missing right and its remedy, as a sentence for the status. */
export async function missingRights(
  client: Client,
  of: GroupResource,
  isPolicyServed: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const objects = ["list", "watch", "patch"].map((verb) => ({ verb, group: of.group, resource: of.resource }));
  const kinds = isPolicyServed ? ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"] : [];
  const policies = kinds.flatMap((resource) => {
    const kind = { group: "admissionregistration.k8s.io", resource };
    const named = ["create", "patch", "delete"].map((verb) => ({ ...kind, verb, name: policyName(of) }));
    return [{ ...kind, verb: "list" }, { ...kind, verb: "watch" }, ...named];
  });
  const asked = [...objects, ...policies, { verb: "get", group: "apiregistration.k8s.io", resource: "apiservices" }];
  const answers = await Promise.all(asked.map((right) => mayDo(client, right, signal)));
  const missing = asked.filter((_, at) => answers[at] === false);
  const [first] = missing;
  if (first === undefined) return undefined;
  const verbs = missing.filter((each) => each.resource === first.resource).map(({ verb }) => verb);
  const entry = isNamespaces(of) ? "the resources" : `{ group: ${JSON.stringify(of.group)}, resource: ${of.resource} }`;
  return `the manager may not ${verbs.join(", ")} ${resourceName(first)}: add ${entry} to the chart's value rbac.labelObjects`;
}

interface Right extends GroupResource {
  readonly verb: string;
  readonly name?: string;
}

async function mayDo(client: Client, right: Right, signal: AbortSignal): Promise<boolean> {
  const review = await client.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: right } },
    doing: "asking for the manager's rights",
    signal,
  });
  return (review as { readonly status?: { readonly allowed?: boolean } } | undefined)?.status?.allowed === true;
}

export function mayListPolicies(client: Client, signal: AbortSignal): Promise<boolean> {
  return mayDo(client, { verb: "list", group: "admissionregistration.k8s.io", resource: "mutatingadmissionpolicies" }, signal);
}

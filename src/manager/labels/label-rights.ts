// What the manager may not do that labels need. The API server is asked before, because a refused watch would
// say it only in the log.
import { resourceName } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { GroupResource } from "../../kube/types.ts";
import { policyName } from "./label-policy.ts";
import { isNamespaces } from "./right-labels.ts";

/** The verbs for labelled objects. */
const OBJECT_VERBS = ["list", "watch", "patch"] as const;

/** The missing right and its remedy, as a sentence; undefined if nothing is missing. */
export async function missingRights(
  client: Pick<KubeClient, "request">,
  of: GroupResource,
  isPolicyServed: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const objects = OBJECT_VERBS.map((verb) => ({ verb, group: of.group, resource: of.resource }));
  const kinds = isPolicyServed ? ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"] : [];
  const policies = kinds.flatMap((resource) => {
    const kind = { group: "admissionregistration.k8s.io", resource };
    const named = (["create", "patch", "delete"] as const).map((verb) => ({ ...kind, verb, name: policyName(of) }));
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

async function mayDo(client: Pick<KubeClient, "request">, right: Right, signal: AbortSignal): Promise<boolean> {
  const review = await client.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: right },
    },
    doing: "asking for the manager's rights",
    signal,
  });
  return (review as { readonly status?: { readonly allowed?: boolean } } | undefined)?.status?.allowed === true;
}

/** True if the manager may read policies, and so may know of policies that are left over. */
export function mayListPolicies(client: Pick<KubeClient, "request">, signal: AbortSignal): Promise<boolean> {
  return mayDo(client, { verb: "list", group: "admissionregistration.k8s.io", resource: "mutatingadmissionpolicies" }, signal);
}

// Compares RBAC rules with the requests in the API server's audit log. Pure.
import type { AuditEvent } from "./kube.ts";

/** A rule of a Role or ClusterRole (rbac.authorization.k8s.io/v1 PolicyRule), with the fields that this project uses. */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** One verb of one resource, or of its objects of one name: "patch ctrlmesh.kruise.io/virtualapps/status", "get configmaps ctrlmesh-ca". */
export function rightsOf(rules: readonly PolicyRule[]): string[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        verbs.flatMap((verb) => {
          const right = `${verb} ${group === "" ? "" : `${group}/`}${resource}`;
          return resourceNames === undefined ? [right] : resourceNames.map((name) => `${right} ${name}`);
        }),
      ),
    ),
  );
}

/** The right that a request needed, with and without the object's name. The rules may grant either. */
function neededBy({ verb, objectRef }: AuditEvent): string[] {
  if (objectRef === undefined) return [];
  const { apiGroup = "", resource, subresource, name } = objectRef;
  const right = `${verb} ${apiGroup === "" ? "" : `${apiGroup}/`}${resource}${subresource === undefined ? "" : `/${subresource}`}`;
  return name === undefined ? [right] : [`${right} ${name}`, right];
}

/** The rights that no request in the log needed. */
export function unusedRights(rights: readonly string[], log: readonly AuditEvent[]): string[] {
  const used = new Set(log.flatMap(neededBy));
  return rights.filter((right) => !used.has(right));
}

/** The requests that were refused for lack of a right: "403 get pods team-a/x". */
export function refusals(log: readonly AuditEvent[]): string[] {
  return log
    .filter(({ responseStatus }) => responseStatus?.code === 403)
    .map((event) => {
      const { namespace = "", name = "" } = event.objectRef ?? {};
      return `403 ${neededBy(event).at(-1)} ${namespace}/${name}`;
    });
}

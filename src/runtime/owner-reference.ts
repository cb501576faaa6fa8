// Who controls an object: read by owns(), written by reconcilers into what they make. Pure.
import { apiVersionOf, type Resource } from "../kube/client/resource.ts";
import type { KubeObject, OwnerReference } from "../kube/types.ts";

/**
 * The reference that makes `owner` the controller of an object: the garbage collector deletes the object after it, and
 * `owns()` finds the way back. The owner must be cluster-scoped or in the object's namespace. It does not block the owner's
 * foreground deletion, so no permission on the owner's finalizers is needed.
 * @param owner as the API server gave it: with a uid
 */
export function controlledBy<T extends KubeObject>(resource: Resource<T>, { metadata }: T): OwnerReference {
  const { name = "", uid = "" } = metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true };
}

/** The reference to the object's controller, if it is of this kind. Any version counts: a reference keeps the one it was made with. */
export function controllerOfKind({ metadata }: KubeObject, { group, kind }: Resource): OwnerReference | undefined {
  return metadata.ownerReferences?.find(
    (reference) => reference.controller === true && reference.kind === kind && groupOf(reference.apiVersion) === group,
  );
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}

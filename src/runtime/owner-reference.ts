// Owner references to the controller of an object. Pure. controller.ts reads them for `owns()`; reconcilers write them.
import { apiVersionOf, type Resource } from "../kube/client/resource.ts";
import type { KubeObject, OwnerReference } from "../kube/types.ts";

/**
 * The reference to `owner` as the controller of an object. The garbage collector deletes the object after its owner, and `owns()` finds
 * the owner. The owner must be cluster-scoped or in the object's namespace. The reference does not block the owner's
 * foreground deletion, so no permission on the owner's finalizers is needed.
 * @param owner as read from the API server, with a uid
 */
export function controlledBy<T extends KubeObject>(resource: Resource<T>, { metadata }: T): OwnerReference {
  const { name = "", uid = "" } = metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true };
}

/** The reference to the object's controller, if the controller is of this kind. Its version may be an older one of the kind. */
export function controllerOfKind({ metadata }: KubeObject, { group, kind }: Resource): OwnerReference | undefined {
  return metadata.ownerReferences?.find(
    (reference) => reference.controller === true && reference.kind === kind && groupOf(reference.apiVersion) === group,
  );
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}

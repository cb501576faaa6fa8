// The reference from an object to its controller, as in metav1.GetControllerOf and NewControllerRef.
import type { KubeObject, OwnerReference } from "../types.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

export function controllerRefOf({ metadata }: Pick<KubeObject, "metadata">): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

export function isControlledBy(object: Pick<KubeObject, "metadata">, { metadata }: Pick<KubeObject, "metadata">): boolean {
  return metadata.uid !== undefined && controllerRefOf(object)?.uid === metadata.uid;
}

/**
 * The reference to `owner` as the controller of an object. The garbage collector deletes the object after its
 * owner. The owner must be cluster-scoped or in the object's namespace. The reference does not block the
 * owner's foreground deletion, so no permission on the owner's finalizers is needed.
 * @param owner as read from the API server, with a uid
 */
export function controllerRef<T extends KubeObject>(resource: Resource<T>, { metadata }: T): OwnerReference {
  const { name = "", uid = "" } = metadata;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, name, uid, controller: true };
}

// Annotations on our own kinds by which users ask for something that is no part of the spec. Read by the manager's
// translation; a bad value is a problem of the object like every other one. The API server's CRD schemas cannot check them.
import { type Finding, fieldAt } from "./rule.ts";

/** On a VirtualApp: "true" takes metadata.managedFields out of what its operator reads. */
export const STRIP_MANAGED_FIELDS = "ctrlmesh.kruise.io/strip-managed-fields";

const VALUES: readonly unknown[] = [undefined, "true", "false"];

/** What must hold for the annotations in the metadata of a VirtualApp. */
export function* virtualAppAnnotations(metadata: unknown): Iterable<Finding> {
  const value = fieldAt(metadata, "annotations", STRIP_MANAGED_FIELDS);
  if (!VALUES.includes(value)) {
    yield { path: ["annotations", STRIP_MANAGED_FIELDS], value, message: 'must be "true" or "false"' };
  }
}

/** True if the object's annotations ask for objects without managedFields. */
export function stripsManagedFields(metadata: { readonly annotations?: Readonly<Record<string, string>> }): boolean {
  return metadata.annotations?.[STRIP_MANAGED_FIELDS] === "true";
}

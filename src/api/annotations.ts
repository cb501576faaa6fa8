// Annotations on our own kinds by which users ask for something that is no part of the spec. Read by the manager's
// translation and injection; a bad value is a problem of the object like every other one. The API server's CRD schemas cannot check
// them. Those of pods are in pod-annotations.ts.
import { didYouMean } from "./nearest.ts";
import { type Finding, fieldAt } from "./rule.ts";

/** On a VirtualApp: "true" takes metadata.managedFields out of what its operator reads. */
export const STRIP_MANAGED_FIELDS = "ctrlmesh.kruise.io/strip-managed-fields";

/** On a VirtualApp, or on a pod, whose word counts more: how the operator is led to its proxy. */
export const INTERCEPT = "ctrlmesh.kruise.io/intercept";

/** On a VirtualApp or a pod: "true" leads the names of the kubernetes Service to the proxy, too. */
export const HOST_ALIASES = "ctrlmesh.kruise.io/host-aliases";

/** Values of the annotation INTERCEPT; the first is the default. */
export const INTERCEPT_MODES = ["env", "kubeconfig", "iptables"] as const;

export type InterceptMode = (typeof INTERCEPT_MODES)[number];

const BOOLEAN: readonly string[] = ["true", "false"];

const VIRTUAL_APP_VALUES: readonly (readonly [annotation: string, allowed: readonly string[]])[] = [
  [STRIP_MANAGED_FIELDS, BOOLEAN],
  [INTERCEPT, INTERCEPT_MODES],
  [HOST_ALIASES, BOOLEAN],
];

/** What must hold for the annotations in the metadata of a VirtualApp. */
export function* virtualAppAnnotations(metadata: unknown): Iterable<Finding> {
  for (const [annotation, allowed] of VIRTUAL_APP_VALUES) {
    const value = fieldAt(metadata, "annotations", annotation);
    const message = wrongChoice(value, allowed);
    if (message !== undefined) yield { path: ["annotations", annotation], value, message };
  }
}

/** Why the value of an annotation is none of those allowed; undefined if it is, or if there is none. */
export function wrongChoice(value: unknown, allowed: readonly string[]): string | undefined {
  if (value === undefined || allowed.some((each) => each === value)) return undefined;
  if (allowed === BOOLEAN) return 'must be "true" or "false"';
  const listed = allowed.map((each) => JSON.stringify(each)).join(", ");
  return `must be one of ${listed}${didYouMean(String(value), allowed)}`;
}

/** Why the value is neither "true" nor "false"; undefined if it is, or if there is none. */
export function wrongBoolean(value: unknown): string | undefined {
  return wrongChoice(value, BOOLEAN);
}

/** True if the object's annotations ask for objects without managedFields. */
export function stripsManagedFields(metadata: { readonly annotations?: Readonly<Record<string, string>> }): boolean {
  return metadata.annotations?.[STRIP_MANAGED_FIELDS] === "true";
}

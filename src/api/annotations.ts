// The annotations of a VirtualApp. Invariant: an invalid value is a problem of the object, as in any field; a
// CRD schema cannot check annotations. Read by the manager's translation and injection. The annotations of
// pods are in pod-annotations.ts.
import { jsonText } from "../base/json.ts";
import { didYouMean } from "./nearest.ts";
import { type Finding, fieldAt } from "./rule.ts";

/** On a VirtualApp: "true" removes metadata.managedFields from the objects that its operator reads. */
export const STRIP_MANAGED_FIELDS = "ctrlmesh.kruise.io/strip-managed-fields";

/**
 * On a VirtualApp: the generation whose moves are confirmed although they exceed
 * `spec.route.maxMovingPercent`.
 */
export const CONFIRM_MOVES = "ctrlmesh.kruise.io/confirm-moves";

/** On a VirtualApp or a pod (which takes precedence): how the operator's requests reach its proxy. */
export const INTERCEPT = "ctrlmesh.kruise.io/intercept";

/** On a VirtualApp or a pod: "true" resolves the names of the Service `kubernetes` to the proxy. */
export const HOST_ALIASES = "ctrlmesh.kruise.io/host-aliases";

/** Values of the annotation INTERCEPT; the first is the default. */
export const INTERCEPT_MODES = ["env", "kubeconfig", "iptables"] as const;

export type InterceptMode = (typeof INTERCEPT_MODES)[number];

const BOOLEAN: readonly string[] = ["true", "false"];

const APP_VALUES: readonly (readonly [annotation: string, allowed: readonly string[]])[] = [
  [STRIP_MANAGED_FIELDS, BOOLEAN],
  [INTERCEPT, INTERCEPT_MODES],
  [HOST_ALIASES, BOOLEAN],
];

/** Finds invalid annotations in the metadata of an object that describes an app. */
export function* appAnnotations(metadata: unknown): Iterable<Finding> {
  for (const [annotation, allowed] of APP_VALUES) {
    const value = fieldAt(metadata, "annotations", annotation);
    const message = wrongChoice(value, allowed);
    if (message !== undefined) yield { path: ["annotations", annotation], value, message };
  }
}

/** Why the value of an annotation is not allowed; undefined if it is allowed or absent. */
export function wrongChoice(value: unknown, allowed: readonly string[]): string | undefined {
  if (value === undefined || allowed.some((each) => each === value)) return undefined;
  if (allowed === BOOLEAN) return 'must be "true" or "false"';
  const listed = allowed.map((each) => JSON.stringify(each)).join(", ");
  return `must be one of ${listed}${didYouMean(jsonText(value), allowed)}`;
}

/** Why the value is not "true" or "false"; undefined if it is one of them or absent. */
export function wrongBoolean(value: unknown): string | undefined {
  return wrongChoice(value, BOOLEAN);
}

/** True if the operator reads objects without managedFields. */
export function stripsManagedFields(metadata: { readonly annotations?: Readonly<Record<string, string>> }): boolean {
  return metadata.annotations?.[STRIP_MANAGED_FIELDS] === "true";
}

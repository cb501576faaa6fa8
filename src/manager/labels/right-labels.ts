// The labels that an object must have under `labelObjects`. Pure. label-policy.ts has the same rules in CEL.
// Invariant: the values follow from names alone, so they never change while an object exists.
import { CONTROL, NAMESPACE, SHARD_HASH } from "../../api/sharding-keys.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { nameHash } from "../../kube/place.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";

/** The keys of the labels; CONTROL for namespaces only. */
export const LABEL_KEYS: readonly string[] = [NAMESPACE, SHARD_HASH, CONTROL];

/** The objects of `namespaces` are labelled by their own names. */
export function isNamespaces({ group, resource }: GroupResource): boolean {
  return group === "" && resource === "namespaces";
}

/** True for a namespace that gets no labels, and whose objects get none. */
export function isOptedOut({ metadata }: KubeObject): boolean {
  return (metadata.labels?.[CONTROL] ?? "true") !== "true";
}

export function missingLabels(of: GroupResource, { metadata }: KubeObject): Labels | undefined {
  const right = isNamespaces(of) ? { ...labelsOf(metadata.name ?? ""), [CONTROL]: "true" } : labelsOf(metadata.namespace ?? "");
  const missing = Object.entries(right).filter(([key, value]) => metadata.labels?.[key] !== value);
  return missing.length === 0 ? undefined : Object.fromEntries(missing);
}

function labelsOf(namespace: string): Labels {
  return { [NAMESPACE]: namespace, [SHARD_HASH]: String(nameHash(namespace)) };
}

// Writes the whole status of an object, for a status with one writer (docs/decisions/0010-status-writers.md).
// Invariants: an equal status is not written, and a status is written only over the version that it was
// compared with.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { createMergePatch } from "./merge-patch.ts";
import { type PatchClient, patchCurrent } from "./patch-current.ts";

interface StatusObject extends KubeObject {
  readonly status?: object | undefined;
}

type StatusOf<T extends StatusObject> = NonNullable<T["status"]>;

/**
 * Replaces the whole status, by a merge patch of the difference: all other fields are removed, even those of
 * other writers. Resolves with the written object; undefined if the object is deleted.
 * @param status or a function that computes it from the current object (called again after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object changed at every attempt
 */
export function writeStatus<T extends StatusObject>(
  client: PatchClient,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<T | undefined> {
  const changesOf = (current: T) => {
    const patch = createMergePatch(current.status ?? {}, typeof status === "function" ? status(current) : status);
    return patch === undefined ? undefined : { status: patch };
  };
  const how = { subresource: "status", conflict: { code: "STATUS_CONFLICT", doing: "writing the status" }, signal };
  return patchCurrent(client, resource, object, changesOf, how);
}

interface DatedCondition {
  readonly status: string;
  readonly lastTransitionTime?: string | undefined;
}

/**
 * The condition (metav1.Condition) with its lastTransitionTime: that of the previous condition of its type if
 * the status is equal, otherwise `now`.
 * @param now in RFC 3339
 */
export function withTransitionTime<C extends { readonly status: string }>(
  condition: C,
  previous: DatedCondition | undefined,
  now: string,
): C & { readonly lastTransitionTime: string } {
  const isSame = previous?.status === condition.status;
  return { ...condition, lastTransitionTime: (isSame ? previous.lastTransitionTime : undefined) ?? now };
}

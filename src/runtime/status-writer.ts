// Writes the whole status of an object, for a status with one writer (docs/decisions/0010-status-writers.md).
// Invariants: an equal status is not written. A status is written only over the version that it was compared
// with.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { createMergePatch } from "./merge-patch.ts";
import { type PatchClient, patchCurrent } from "./patch-current.ts";

/** An object with a status. */
export interface StatusObject extends KubeObject {
  readonly status?: object | undefined;
}

type StatusOf<T extends StatusObject> = NonNullable<T["status"]>;

/**
 * Replaces the whole status, by a merge patch of the difference: all other fields are removed, even those of
 * other writers. Resolves with the written object; undefined if the object is deleted.
 * @param status the desired status, or a function that computes it from the current object (called again
 * after a conflict)
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

// Adds and removes a finalizer, which keeps a deleted object until its external resources are cleaned up.
// Invariant: finalizers of other programs are never lost: a write needs the resourceVersion of the read.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";
import { type PatchClient, patchCurrent } from "./patch-current.ts";

interface FinalizerOptions<T extends KubeObject> {
  readonly client: PatchClient;
  readonly resource: Resource<T>;
  /** "domain/name". It must never change: only a program that knows it can complete these deletions. */
  readonly finalizer: string;
  readonly signal?: AbortSignal;
  /** Called if this call, and not another writer, has changed the finalizer. */
  readonly onChanged?: (() => void) | undefined;
}

export function hasFinalizer({ metadata }: KubeObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false;
}

/**
 * Adds or removes the finalizer, and returns the resulting object; undefined if the object is gone, or was
 * created again under its name. An object that is being deleted gets no finalizer, since the API server
 * refuses that.
 * @throws MeshError `FINALIZER_CONFLICT` if the object changed at every attempt
 */
export async function setFinalizer<T extends KubeObject>(
  { client, resource, finalizer, signal, onChanged }: FinalizerOptions<T>,
  object: T,
  isPresent: boolean,
): Promise<T | undefined> {
  let isChanged = false;
  const changesOf = (current: T) => {
    const isEnding = current.metadata.deletionTimestamp !== undefined;
    isChanged = hasFinalizer(current, finalizer) !== isPresent && !(isPresent && isEnding);
    if (!isChanged) return undefined;
    const others = (current.metadata.finalizers ?? []).filter((each) => each !== finalizer);
    return { metadata: { finalizers: isPresent ? [...others, finalizer] : others } };
  };
  const how = { conflict: { code: "FINALIZER_CONFLICT", doing: "writing the finalizers" }, signal };
  const after = await patchCurrent(client, resource, object, changesOf, how);
  if (isChanged && after !== undefined) onChanged?.();
  return after;
}

// Deletion with a finalizer, which keeps an object until its external resources are cleaned up. Invariant:
// nothing is created before the object has the finalizer, and the finalizer is removed only after the
// clean-up has succeeded. Called by reconcilers. (Objects with an owner reference need no finalizer: the
// garbage collector deletes them.)
import type { Resource } from "../kube/client/resource.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import type { Result } from "./reconciler.ts";

export interface FinalizerOptions<T extends KubeObject> {
  readonly client: Pick<KubeClient, "patch">;
  readonly resource: Resource<T>;
  /**
   * "domain/name". The name must never change: only a program that knows the name can complete the deletion
   * of these objects.
   */
  readonly finalizer: string;
  readonly signal?: AbortSignal;
  readonly fieldManager?: string;
}

/**
 * How to reconcile an object, and how to clean up after it. Both are level-based: they may be called any
 * number of times.
 */
export interface Finalized<T extends KubeObject> {
  /**
   * Called with the object after it has the finalizer. Use this object, since its resourceVersion may be
   * newer.
   */
  apply(object: T): Promise<Result>;
  /**
   * Removes the external resources of the object. The object is not deleted until `cleanUp` resolves without
   * requeueAfterMs.
   */
  cleanup(object: T): Promise<Result>;
}

/**
 * Reconciles an object with a finalizer. For a live object it adds the finalizer and calls `apply`. For an
 * object that is being deleted it cleans up and removes the finalizer. It does nothing for an object that is
 * being deleted and does not have the finalizer.
 * @throws StatusError `Conflict` if the object has changed since it was read; the controller retries
 */
export async function reconcileFinalized<T extends KubeObject>(
  options: FinalizerOptions<T>,
  object: T,
  { apply, cleanup }: Finalized<T>,
): Promise<Result> {
  const { finalizer } = options;
  const finalizers = object.metadata.finalizers ?? [];
  const isThere = finalizers.includes(finalizer);
  if (object.metadata.deletionTimestamp === undefined) {
    // A change of finalizers does not raise the generation, so the predicate generationChanged would drop the
    // event. So continue at once.
    return apply(isThere ? object : await writeFinalizers(options, object, [...finalizers, finalizer]));
  }
  if (!isThere) return {};
  const result = await cleanup(object);
  if (result.requeueAfterMs !== undefined) return result;
  try {
    await writeFinalizers(
      options,
      object,
      finalizers.filter((name) => name !== finalizer),
    );
  } catch (error) {
    if (!isStatus(error, "NotFound")) throw error; // another writer has removed it
  }
  return {};
}

/**
 * Writes the list of an object's finalizers. The version is a precondition, since a merge patch replaces the
 * list and the finalizer of another program must not be lost.
 * @throws StatusError `Conflict` if the object has changed since it was read, `NotFound` if it is deleted
 */
export function writeFinalizers<T extends KubeObject>(
  { client, resource, signal, fieldManager }: Omit<FinalizerOptions<T>, "finalizer">,
  { metadata: { namespace, name = "", uid, resourceVersion } }: T,
  finalizers: readonly string[],
): Promise<T> {
  const body = { metadata: { uid, resourceVersion, finalizers } };
  const call = { signal, ...(fieldManager === undefined ? {} : { fieldManager }) };
  return client.patch(resource, { namespace, name }, { type: "merge", body }, call);
}

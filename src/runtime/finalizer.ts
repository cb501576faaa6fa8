// Deletion in two steps: a finalizer keeps an object until what it has left elsewhere is cleaned up. Invariant: nothing is
// made before the finalizer is on the object, and the finalizer is taken off only after the clean-up has succeeded.
// Called by reconcilers. (What an owner reference can reach needs no finalizer: the garbage collector takes it along.)
import type { Resource } from "../kube/client/resource.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import type { Result } from "./reconciler.ts";

export interface FinalizerOptions<T extends KubeObject> {
  readonly client: Pick<KubeClient, "patch">;
  readonly resource: Resource<T>;
  /** "domain/name", the same for ever: objects that carry it can only be deleted by who knows it. */
  readonly finalizer: string;
  readonly signal?: AbortSignal;
  readonly fieldManager?: string;
}

/** What to do with an object while it lives and when it goes. Both are level-based: they may be called again and again. */
export interface Finalized<T extends KubeObject> {
  /** The object carries the finalizer. It is the one to go on with: its resourceVersion may be newer than before. */
  apply(object: T): Promise<Result>;
  /** Removes what the object has left. Until it resolves without requeueAfterMs, the object stays. */
  cleanup(object: T): Promise<Result>;
}

/**
 * Reconciles an object under a finalizer: puts it on and applies, or cleans up and takes it off. An object that goes
 * without carrying it needs nothing.
 * @throws StatusError `Conflict` if the object has changed meanwhile: the controller comes again
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
    // A finalizer does not count in the generation, so no event would come back through generationChanged: go on at once.
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
    if (!isStatus(error, "NotFound")) throw error; // somebody else has taken it off
  }
  return {};
}

/**
 * Writes the list of an object's finalizers. With the version as precondition, since a merge patch replaces the list: nobody else's
 * finalizer may get lost.
 * @throws StatusError `Conflict` if the object has changed meanwhile, `NotFound` if it is gone
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

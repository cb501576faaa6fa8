// Patches an object over exactly the version that the patch was computed from. Invariant: an object that is
// deleted, or was created again under the same name, is not written.
import { MeshError } from "../base/errors.ts";
import type { ObjectRef, Resource } from "../kube/client/resource.ts";
import type { CallOptions, KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject, ObjectMeta } from "../kube/types.ts";

export type PatchClient = Pick<KubeClient, "get" | "patch">;

interface PatchCurrentOptions {
  readonly signal?: AbortSignal | undefined;
  readonly subresource?: string;
  /** The MeshError if the object changes at every attempt. `doing` is, for example, "writing the status". */
  readonly conflict: { readonly code: string; readonly doing: string };
}

/** The merge patch; undefined if the object is as desired. */
type ChangesOf<T> = (current: T) => { readonly metadata?: object; readonly status?: unknown } | undefined;

const MAX_ATTEMPTS = 5;

/**
 * Sends the merge patch that `changesOf` computes. After a conflict it reads the object and computes the
 * patch again. Resolves with the resulting object; undefined if the object is gone.
 * @throws the MeshError `conflict` if the object changed at every attempt
 */
export async function patchCurrent<T extends KubeObject>(
  client: PatchClient,
  resource: Resource<T>,
  object: T,
  changesOf: ChangesOf<T>,
  { conflict, ...call }: PatchCurrentOptions,
): Promise<T | undefined> {
  const { namespace, name = "", uid } = object.metadata;
  const ref = { namespace, name };
  let current = object;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const changes = changesOf(current);
    if (changes === undefined) return current;
    const body = { ...changes, metadata: { ...preconditions(current), ...changes.metadata } };
    try {
      return await client.patch(resource, ref, { type: "merge", body }, call);
    } catch (error) {
      if (isStatus(error, "NotFound")) return undefined;
      if (!isStatus(error, "Conflict")) throw error;
    }
    const newer = await getIfThere(client, resource, ref, { signal: call.signal });
    if (newer === undefined || newer.metadata.uid !== uid) return undefined;
    current = newer;
  }
  throw new MeshError(conflict.code, `${conflict.doing} of ${name}: the object changed at each of ${MAX_ATTEMPTS} attempts`);
}

/** The uid and version of an object. A write with them fails if the object has changed since it was read. */
export function preconditions({ metadata: { uid, resourceVersion } }: KubeObject): ObjectMeta {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

/** Reads an object; undefined if it does not exist. */
export async function getIfThere<T extends KubeObject>(
  client: Pick<KubeClient, "get">,
  resource: Resource<T>,
  ref: ObjectRef,
  call: CallOptions,
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref, call);
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

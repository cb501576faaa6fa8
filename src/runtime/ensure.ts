// Creates an object, or updates it to the desired state. The caller does this at every reconcile, with the
// object from a store. Invariants: an object without a difference is not written; labels of other writers
// stay.
import type { Resource } from "../kube/client/resource.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import { createMergePatch } from "./merge-patch.ts";
import { preconditions } from "./patch-current.ts";

interface EnsureOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * How a missing object is created. "apply" needs only a right that RBAC can restrict to the object's name,
   * but overwrites an object that another writer has just created. Default "create" keeps such an object.
   */
  readonly createBy?: "create" | "apply";
}

/**
 * Creates the desired object if `stored` is undefined; otherwise patches what differs. The fields of
 * `desired` are compared as a whole (`spec`, `data`). Fields that `desired` lacks, and further labels and
 * owners, stay. Resolves with the written object; undefined if there was nothing to write, or if another
 * writer has just created the object, which the watch will show.
 * @throws StatusError `Conflict` if the object has changed since it was stored; the controller retries
 */
export async function ensure<T extends KubeObject>(
  client: Pick<KubeClient, "create" | "patch">,
  resource: Resource<T>,
  stored: T | undefined,
  desired: T,
  { signal, createBy = "create" }: EnsureOptions = {},
): Promise<T | undefined> {
  const { namespace, name = "" } = desired.metadata;
  const ref = { namespace, name };
  if (stored === undefined) {
    if (createBy === "apply") return client.patch(resource, ref, { type: "apply", body: desired }, { signal });
    return createIfMissing(client, resource, desired, signal);
  }
  const patch = changesOf(stored, desired);
  if (patch === undefined) return undefined;
  // The write needs the version of the comparison. Otherwise the changes of two writers could mix.
  const body = { ...patch, metadata: { ...patch.metadata, ...preconditions(stored) } };
  return client.patch(resource, ref, { type: "merge", body }, { signal });
}

/** Creates the object; undefined if an object has the name already. */
export async function createIfMissing<T extends KubeObject>(
  client: Pick<KubeClient, "create">,
  resource: Resource<T>,
  object: T,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  try {
    return await client.create(resource, object, { signal });
  } catch (error) {
    if (isStatus(error, "AlreadyExists")) return undefined;
    throw error;
  }
}

function changesOf<T extends KubeObject>(stored: T, desired: T): { readonly metadata?: object } | undefined {
  const { apiVersion: _, kind: __, metadata, ...fields } = desired;
  const before = Object.fromEntries(Object.keys(fields).map((key) => [key, stored[key as keyof T]]));
  const { labels = {}, ownerReferences = [] } = stored.metadata;
  const missingOwners = (metadata.ownerReferences ?? []).filter(({ uid }) => !ownerReferences.some((each) => each.uid === uid));
  const after = { labels: { ...labels, ...metadata.labels }, ownerReferences: [...ownerReferences, ...missingOwners] };
  const patch = createMergePatch({ ...before, metadata: { labels, ownerReferences } }, { ...fields, metadata: after });
  return patch as { readonly metadata?: object } | undefined;
}

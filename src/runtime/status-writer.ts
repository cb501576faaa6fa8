// Writes the status of an object, in two ways (docs/decisions/0010-status-writers.md): writeStatus for the
// only writer of a status, applyStatus for one of several writers. Invariants: an equal status is not
// written. A status is written only over the version that it was compared with. An object that is deleted, or
// was created again under the same name, is not written.
import { MeshError } from "../base/errors.ts";
import type { Resource } from "../kube/client/resource.ts";
import type { KubeClient, Patch } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject, ObjectMeta } from "../kube/types.ts";
import { isDeepEqual } from "./deep-equal.ts";
import { createMergePatch } from "./merge-patch.ts";

/** An object with a status. */
export interface StatusObject extends KubeObject {
  readonly status?: object | undefined;
}

type StatusOf<T extends StatusObject> = NonNullable<T["status"]>;

export interface WriteStatusOptions {
  readonly signal?: AbortSignal;
  /** Name of the writer in metadata.managedFields; default: the first word of the user agent. */
  readonly fieldManager?: string;
}

export interface ApplyStatusOptions {
  readonly signal?: AbortSignal;
  /**
   * Name of the writer. Fields that it applied before and omits now are removed. All replicas must use the
   * same name.
   */
  readonly fieldManager: string;
  /**
   * True takes over fields of other managers; default true. If false, such a field causes a StatusError
   * `Conflict`.
   */
  readonly force?: boolean;
}

type StatusClient = Pick<KubeClient, "get" | "patch">;

const MAX_ATTEMPTS = 5;

/**
 * Replaces the whole status, by a merge patch of the difference: all other fields are removed, also those of
 * other writers. Resolves with the written object; undefined if the object is deleted.
 * @param status the desired status, or a function that computes it from the current object (called again
 * after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object changed at every attempt
 */
export function writeStatus<T extends StatusObject>(
  client: StatusClient,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  options: WriteStatusOptions = {},
): Promise<T | undefined> {
  return write(client, resource, object, options, (current, metadata) => {
    const patch = createMergePatch(current.status ?? {}, desiredStatus(status, current));
    return patch === undefined ? undefined : { type: "merge", body: { metadata, status: patch } };
  });
}

/**
 * Applies a part of the status (server-side apply): sets these fields, removes other fields that this manager
 * applied before, and keeps those of other managers. A list is one field, unless the CRD declares it a map
 * (conditions by type). Resolves with the written object; undefined if the object is deleted.
 * @param status the fields of this manager, or a function that computes them from the current object (called
 * again after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object changed at every attempt; StatusError for a field that is
 * not in the CRD
 */
export function applyStatus<T extends StatusObject>(
  client: StatusClient,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  { fieldManager, force = true, signal }: ApplyStatusOptions,
): Promise<T | undefined> {
  return write(client, resource, object, { signal }, (current, metadata) => {
    const desired = desiredStatus(status, current);
    if (isDeepEqual(current.status ?? {}, desired)) return undefined;
    return { type: "apply", body: { metadata, status: desired }, fieldManager, force };
  });
}

function desiredStatus<T extends StatusObject>(status: StatusOf<T> | ((current: T) => StatusOf<T>), current: T): StatusOf<T> {
  return typeof status === "function" ? status(current) : status;
}

/** The loop of both ways: patches, and after a conflict reads the object and computes the patch again. */
async function write<T extends StatusObject>(
  client: StatusClient,
  resource: Resource<T>,
  object: T,
  options: { readonly signal?: AbortSignal | undefined; readonly fieldManager?: string },
  patchOf: (current: T, metadata: ObjectMeta) => Patch | undefined,
): Promise<T | undefined> {
  const ref = { namespace: object.metadata.namespace, name: object.metadata.name ?? "" };
  let current = object;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const patch = patchOf(current, preconditions(current));
    if (patch === undefined) return current;
    try {
      return await client.patch(resource, ref, patch, { ...options, subresource: "status" });
    } catch (error) {
      if (isStatus(error, "NotFound")) return undefined;
      if (!isStatus(error, "Conflict") || isFieldConflict(error)) throw error;
    }
    const fresh = await getIfThere(client, resource, ref, options.signal);
    if (fresh === undefined || fresh.metadata.uid !== object.metadata.uid) return undefined;
    current = fresh;
  }
  throw new MeshError(
    "STATUS_CONFLICT",
    `writing the status of ${ref.name}: the object changed at each of ${MAX_ATTEMPTS} attempts`,
  );
}

function preconditions({ metadata: { uid, resourceVersion } }: KubeObject): ObjectMeta {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

// Another read does not resolve this conflict, since the other manager still owns the field.
function isFieldConflict(error: unknown): boolean {
  return (
    isStatus(error, "Conflict") && (error.status.details?.causes ?? []).some(({ reason }) => reason === "FieldManagerConflict")
  );
}

async function getIfThere<T extends KubeObject>(
  client: Pick<KubeClient, "get">,
  resource: Resource<T>,
  ref: { readonly namespace: string | undefined; readonly name: string },
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  try {
    return await client.get(resource, ref, { signal });
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

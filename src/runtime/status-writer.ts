// Writing an object's status, in two ways that are two meanings (docs/decisions/0010-status-writers.md): writeStatus for who
// writes the whole status alone, applyStatus for one of several who each write a part. Invariant of both: an equal status
// is not written; a status is only written over the version it was compared with, so two writers cannot mix; an object that
// is gone, or made anew under the same name, is left alone.
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
  /** Name of the writer in metadata.managedFields; the API server takes the user agent's first word if it is absent. */
  readonly fieldManager?: string;
}

export interface ApplyStatusOptions {
  readonly signal?: AbortSignal;
  /** Name of the writer: what was applied under it before and is left out now is removed. The same in all replicas. */
  readonly fieldManager: string;
  /** Take fields over from other managers; default true. With false a foreign field is a StatusError `Conflict`. */
  readonly force?: boolean;
}

type StatusClient = Pick<KubeClient, "get" | "patch">;

const MAX_ATTEMPTS = 5;

/**
 * Makes the whole status this one, by a merge patch of the difference: fields that are not in it are removed, whoever wrote
 * them. Resolves with the object as it is then; undefined if the object is gone.
 * @param status the whole wished status, or how it follows from the object as it is (asked again after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object kept changing under it
 */
export function writeStatus<T extends StatusObject>(
  client: StatusClient,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  options: WriteStatusOptions = {},
): Promise<T | undefined> {
  return write(client, resource, object, options, (current, metadata) => {
    const patch = createMergePatch(current.status ?? {}, wishedStatus(status, current));
    return patch === undefined ? undefined : { type: "merge", body: { metadata, status: patch } };
  });
}

/**
 * Applies a part of the status (server-side apply): the fields in it become these, those that this manager applied before
 * are removed, those of other managers stay. A list is one field, unless the CRD says it is a map (conditions by type).
 * Resolves with the object as it is then; undefined if the object is gone.
 * @param status the fields of this manager, or how they follow from the object as it is (asked again after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object kept changing under it; StatusError for a field that the CRD does not know
 */
export function applyStatus<T extends StatusObject>(
  client: StatusClient,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  { fieldManager, force = true, signal }: ApplyStatusOptions,
): Promise<T | undefined> {
  return write(client, resource, object, { signal }, (current, metadata) => {
    const wished = wishedStatus(status, current);
    if (isDeepEqual(current.status ?? {}, wished)) return undefined;
    return { type: "apply", body: { metadata, status: wished }, fieldManager, force };
  });
}

function wishedStatus<T extends StatusObject>(status: StatusOf<T> | ((current: T) => StatusOf<T>), current: T): StatusOf<T> {
  return typeof status === "function" ? status(current) : status;
}

/** The one loop of both: patches, and after a conflict reads the object and asks again for the patch. */
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
  throw new MeshError("STATUS_CONFLICT", `writing the status of ${ref.name}: it changed ${MAX_ATTEMPTS} times meanwhile`);
}

function preconditions({ metadata: { uid, resourceVersion } }: KubeObject): ObjectMeta {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

// Another manager's field does not become ours by reading again.
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

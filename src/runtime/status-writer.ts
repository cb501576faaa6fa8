// Writing an object's status. Invariant: an equal status is not written; a status is only written over the version it
// was compared with, so two writers cannot mix; an object that is gone, or made anew under the same name, is left alone.
//
// A merge patch of the difference with metadata.resourceVersion as its precondition, and not server-side apply: every
// API server and test double has it, it needs no field ownership, and it leaves fields of newer versions as they are.
import { MeshError } from "../base/errors.ts";
import type { Resource } from "../kube/client/resource.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";
import { createMergePatch } from "./merge-patch.ts";

/** An object with a status. */
export interface StatusObject extends KubeObject {
  readonly status?: object | undefined;
}

type StatusOf<T extends StatusObject> = NonNullable<T["status"]>;

export interface WriteStatusOptions {
  readonly signal?: AbortSignal;
  readonly fieldManager?: string;
}

const MAX_ATTEMPTS = 5;

/**
 * Writes the status, if it differs, and gives back the object as it is then; undefined if the object is gone.
 * @param status the whole wished status, or how it follows from the object as it is (asked again after a conflict)
 * @throws MeshError `STATUS_CONFLICT` if the object kept changing under it
 */
export async function writeStatus<T extends StatusObject>(
  client: Pick<KubeClient, "get" | "patch">,
  resource: Resource<T>,
  object: T,
  status: StatusOf<T> | ((current: T) => StatusOf<T>),
  options: WriteStatusOptions = {},
): Promise<T | undefined> {
  const ref = { namespace: object.metadata.namespace, name: object.metadata.name ?? "" };
  let current = object;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const wished = typeof status === "function" ? status(current) : status;
    const patch = createMergePatch(current.status ?? {}, wished);
    if (patch === undefined) return current;
    const body = { metadata: { resourceVersion: current.metadata.resourceVersion, uid: current.metadata.uid }, status: patch };
    try {
      return await client.patch(resource, ref, { type: "merge", body }, { ...options, subresource: "status" });
    } catch (error) {
      if (isStatus(error, "NotFound")) return undefined;
      if (!isStatus(error, "Conflict")) throw error;
    }
    const fresh = await getIfThere(client, resource, ref, options.signal);
    if (fresh === undefined || fresh.metadata.uid !== object.metadata.uid) return undefined;
    current = fresh;
  }
  throw new MeshError("STATUS_CONFLICT", `writing the status of ${ref.name}: it changed ${MAX_ATTEMPTS} times meanwhile`);
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

// Puts the finalizer on a source object and takes it off. Invariant: no finalizer of others is lost, since the list is only written over
// the version that it was read from; an object that is gone, or made anew under the same name, is left alone.
import { ROUTES_FINALIZER } from "../../api/finalizers.ts";
import { MeshError } from "../../base/errors.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { writeFinalizers } from "../../runtime/finalizer.ts";

const MAX_ATTEMPTS = 5;

export function hasFinalizer({ metadata }: KubeObject): boolean {
  return metadata.finalizers?.includes(ROUTES_FINALIZER) ?? false;
}

/**
 * Makes the finalizer present or absent, and gives back the object as it is then; undefined if the object is gone.
 * @param onChanged told when it was this call that did so, over an object in which it was not so
 * @throws MeshError `FINALIZER_CONFLICT` if the object kept changing under it
 */
export async function setFinalizer<O extends KubeObject>(
  client: Pick<KubeClient, "get" | "patch">,
  resource: Resource<O>,
  object: O,
  isPresent: boolean,
  signal: AbortSignal,
  onChanged?: () => void,
): Promise<O | undefined> {
  const { uid, name = "", namespace } = object.metadata;
  const ref = { namespace, name };
  const how = { client, resource, signal, fieldManager: "ctrlmesh-manager" };
  let current = object;
  try {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      if (hasFinalizer(current) === isPresent) return current;
      const others = (current.metadata.finalizers ?? []).filter((each) => each !== ROUTES_FINALIZER);
      try {
        const after = await writeFinalizers(how, current, isPresent ? [...others, ROUTES_FINALIZER] : others);
        onChanged?.();
        return after;
      } catch (error) {
        if (!isStatus(error, "Conflict")) throw error;
      }
      current = await client.get(resource, ref, { signal });
      if (current.metadata.uid !== uid) return undefined;
      // An object that is being deleted takes no new finalizer.
      if (isPresent && current.metadata.deletionTimestamp !== undefined) return current;
    }
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
  throw new MeshError("FINALIZER_CONFLICT", `writing the finalizers of ${name}: it changed ${MAX_ATTEMPTS} times meanwhile`);
}

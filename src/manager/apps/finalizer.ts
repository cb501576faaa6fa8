// Adds the finalizer to a source object and removes it. Invariant: other finalizers are never lost, because a
// write needs the resourceVersion of the read. An object that is gone, or was created again under its name,
// stays unchanged.
import { ROUTES_FINALIZER } from "../../api/finalizers.ts";
import { MeshError } from "../../base/errors.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import { writeFinalizers } from "../../runtime/finalizer.ts";
import type { App } from "./app.ts";

const MAX_ATTEMPTS = 5;

/** True while pods may have routes of the app: one of its objects has the finalizer. */
export function isHeld({ objects }: Pick<App, "objects">): boolean {
  return objects.some(hasFinalizer);
}

export function hasFinalizer({ metadata }: KubeObject): boolean {
  return metadata.finalizers?.includes(ROUTES_FINALIZER) ?? false;
}

/**
 * Adds or removes the finalizer, and returns the resulting object; undefined if the object is gone.
 * @param onChanged called if this call changed the finalizer
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
      // The API server refuses a new finalizer on an object that is being deleted.
      if (isPresent && current.metadata.deletionTimestamp !== undefined) return current;
    }
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
  throw new MeshError("FINALIZER_CONFLICT", `writing the finalizers of ${name}: it changed ${MAX_ATTEMPTS} times meanwhile`);
}

// Whether the spec that the watch has brought is still the API server's. Watches come back one by one after an outage: a namespace may
// be seen that was born after an edit which is not seen yet, and it must not be given to whom the spec named before. So the object is
// read once after each route that is compiled: what had that route's namespaces when it was compiled has this spec later. Used by the
// VirtualApp reconciler.
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isStatus } from "../../../kube/status.ts";
import type { RouteTable } from "../../../route/table.ts";
import { VIRTUAL_APPS } from "../../resources.ts";

export interface SpecCheck {
  /**
   * False if there is a newer spec than the one that `compiled` was just made from, or none: the watch will bring it.
   * @throws what reading the object throws
   */
  isNewest(key: string, app: VirtualApp, compiled: RouteTable, signal: AbortSignal): Promise<boolean>;
  forget(key: string): void;
}

export function createSpecCheck(client: Pick<KubeClient, "get">): SpecCheck {
  const checked = new Map<string, RouteTable>();
  return {
    async isNewest(key, { metadata: { namespace, name = "", uid, generation } }, compiled, signal) {
      if (checked.get(key) === compiled) return true;
      try {
        const { metadata } = await client.get(VIRTUAL_APPS, { namespace, name }, { signal });
        if (metadata.uid !== uid || metadata.generation !== generation) return false;
      } catch (error) {
        if (isStatus(error, "NotFound")) return false;
        throw error;
      }
      checked.set(key, compiled);
      return true;
    },
    forget: (key) => void checked.delete(key),
  };
}

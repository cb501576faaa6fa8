// Whether the spec that the watch has brought is still the API server's. Watches come back one by one after an outage: a namespace may
// be seen that was born after an edit which is not seen yet, and it must not be given to whom the spec named before. So the object is
// read once after each route that is compiled: what had that route's namespaces when it was compiled has this spec later. An edit that
// is found so is not waited for, since a watch may hang for more than a minute before anybody knows. Used by the VirtualApp reconciler.

import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { isStatus } from "../../../kube/status.ts";
import type { RouteTable } from "../../../route/table.ts";

export type SpecVerdict =
  | "newest"
  /** There is a newer spec, which `latest` gives from now on. */
  | "edited"
  /** The object is gone, or made anew under its name: the watch will bring that. */
  | "gone";

export interface SpecCheck {
  /** The object as the watch has brought it, or as it was read, if that has a newer spec. */
  latest(key: string, seen: VirtualApp): VirtualApp;
  /**
   * Judges the spec that `compiled` was just made from.
   * @throws what reading the object throws
   */
  check(key: string, app: VirtualApp, compiled: RouteTable, signal: AbortSignal): Promise<SpecVerdict>;
  forget(key: string): void;
}

export function createSpecCheck(client: Pick<KubeClient, "get">): SpecCheck {
  const checked = new Map<string, RouteTable>();
  const read = new Map<string, VirtualApp>();
  return {
    latest(key, seen) {
      const own = read.get(key);
      if (own !== undefined && isNewer(own, seen)) return own;
      read.delete(key);
      return seen;
    },
    async check(key, app, compiled, signal) {
      if (checked.get(key) === compiled) return "newest";
      const { namespace, name = "" } = app.metadata;
      const now = await client.get(VIRTUAL_APPS, { namespace, name }, { signal }).catch((error: unknown) => {
        if (isStatus(error, "NotFound")) return undefined;
        throw error;
      });
      if (now === undefined || now.metadata.uid !== app.metadata.uid) return "gone";
      if (isNewer(now, app)) {
        read.set(key, now);
        return "edited";
      }
      checked.set(key, compiled);
      return "newest";
    },
    forget(key) {
      checked.delete(key);
      read.delete(key);
    },
  };
}

function isNewer(a: VirtualApp, b: VirtualApp): boolean {
  return a.metadata.uid === b.metadata.uid && (a.metadata.generation ?? 0) > (b.metadata.generation ?? 0);
}

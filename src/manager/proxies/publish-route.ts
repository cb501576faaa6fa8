// The manager's side of the resource type "route". Invariant: equal tables of all pods are one object, so that the planner reads each table
// once, and a proxy that comes back is not asked for it. Called by the reconciler of an app.
import type { Snapshot } from "../../route/snapshot.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { ProxyRegistry } from "./proxy-registry.ts";

/** What the pod's proxy is to enforce from now on. */
export function publishRoute(registry: Pick<ProxyRegistry, "publish" | "tables">, pod: string, snapshot: Snapshot): void {
  const table = registry.tables.share(snapshot.table);
  registry.publish(pod, ROUTE, table === snapshot.table ? snapshot : { ...snapshot, table });
}

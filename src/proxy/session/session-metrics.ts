// The session's metrics.
import { Counter, Gauge, type Registry } from "../../base/metrics.ts";

export type SessionMetrics = ReturnType<typeof createSessionMetrics>;

export function createSessionMetrics(registry: Registry) {
  const registers = [registry];
  return {
    routeVersion: new Gauge({
      name: "ctrlmesh_proxy_route_version",
      help: "Version of the route snapshot in force; 0 before the first.",
      registers,
    }),
    managerConnected: new Gauge({
      name: "ctrlmesh_proxy_manager_connected",
      help: "1 while the stream to the manager is up.",
      registers,
    }),
    snapshotRejected: new Counter({
      name: "ctrlmesh_proxy_snapshot_rejected_total",
      help: "Snapshots that were refused, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    leader: new Gauge({ name: "ctrlmesh_proxy_leader", help: "1 while this pod holds its subset's lock.", registers }),
    promiseUnstored: new Gauge({
      name: "ctrlmesh_proxy_promise_unstored",
      help: "1 while the proxy cannot store its promise on disk: after a restart it may wait before it connects.",
      registers,
    }),
  };
}

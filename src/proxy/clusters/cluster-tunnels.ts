// The streams of exec, attach and port-forward into one cluster. Invariants: all clusters together have MAX_TUNNELS, and each has its share
// of them; the writes of a stream count until FLUSH_MS after its end; no stream outlives `stop`.
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Places } from "../../base/connection-places.ts";
import { MeshError } from "../../base/errors.ts";
import { StatusError } from "../../kube/status.ts";
import type { ApiServer } from "../api-server/api-server.ts";
import { FLUSH_MS } from "../api-server/tunnel.ts";
import type { Call } from "../call/call.ts";
import { CallAbort } from "../http/call-signal.ts";

/** Into all clusters together. Each takes about 0.2 MB, most of it for TLS. */
export const MAX_TUNNELS = 500;

interface ClusterTunnelsOptions {
  /** Of the cluster. */
  readonly name: string;
  readonly api: Pick<ApiServer, "upgrade">;
  /** Those of the tunnels into all clusters. */
  readonly places: Places;
  readonly clock: Clock;
  /** @returns called when nothing more of the stream is sent */
  readonly beginWrite: (call: Call) => () => void;
}

export function createClusterTunnels({ name, api, places, clock, beginWrite }: ClusterTunnelsOptions) {
  const tunnels = new Set<CallAbort>();
  return {
    upgrade(call: Call): ReturnType<ApiServer["upgrade"]> {
      const reply = api.upgrade(call);
      const tunnel = new CallAbort();
      const place = places.take(name, () => tunnel.abort(new MeshError("ABORTED", "another cluster is entitled to the place")));
      if (place === undefined) throw noPlace(name);
      place.become("busy");
      tunnels.add(tunnel);
      const over = beginWrite(call);
      // The server fires the signal of every upgraded call in the end.
      onAbort(call.signal, () => {
        place.leave();
        tunnels.delete(tunnel);
        tunnel.abort(call.signal.reason);
        clock.after(FLUSH_MS, over);
      });
      return { ...reply, tunnel: { ...call, signal: tunnel } };
    },
    stop(): void {
      for (const tunnel of tunnels) tunnel.abort(new MeshError("ABORTED", "the cluster is not served any more"));
    },
  };
}

function noPlace(cluster: string): StatusError {
  const why = `all ${MAX_TUNNELS} places for streams into other clusters are taken, and this cluster has its share of them`;
  return new StatusError("ServiceUnavailable", `ctrlmesh: cluster ${JSON.stringify(cluster)}: ${why}`, { retryAfterSeconds: 1 });
}

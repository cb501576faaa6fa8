// The API server of another cluster. Invariants: no byte of a write goes there unless the API server at home accepts this pod. If nobody
// knows whether a write has arrived, it counts as in flight for as long as that API server may work on it. Nothing outlives `stop`.
import type { Places } from "../../base/connection-places.ts";
import { isMeshError } from "../../base/errors.ts";
import { Registry } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { RequestInfo, ResourceInfo } from "../../kube/request-info.ts";
import { StatusError } from "../../kube/status.ts";
import type { ClusterRoute, ClusterUpstream } from "../../mesh/ownership/clusters.ts";
import { isAct, reachOf } from "../../mesh/ownership/decide.ts";
import { governingPlace } from "../../mesh/ownership/snapshot.ts";
import { type ApiServer, type ApiServerOptions, createApiServer, DEFAULT_TIMEOUTS } from "../api-server/api-server.ts";
import { fixedTrust } from "../api-server/connector.ts";
import type { Call, Handler } from "../call/call.ts";
import { type HomeProof, whyUnproven } from "../home/home-proof.ts";
import { sharedBody } from "../http/byte-stream.ts";
import type { FairPace } from "../http/fair-pace.ts";
import type { ClusterReach } from "../observe/cluster-reach.ts";
import type { Session } from "../session/session.ts";
import type { ClusterMemory } from "./answer-memory.ts";
import { createClusterTunnels } from "./cluster-tunnels.ts";

export interface ClusterApiDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly session: Pick<Session, "beginWrite">;
  readonly home: Pick<HomeProof, "leftMs" | "authorization">;
  readonly reach: ClusterReach;
  readonly memory: ClusterMemory;
  /** That of all clusters. */
  readonly pace: FairPace;
  /** Those of the tunnels into all clusters. */
  readonly places: Places;
  readonly upstream?: Pick<ApiServerOptions, "timeouts" | "liveness"> | undefined;
}

export type Upstreamed = Pick<ClusterRoute, "name" | "drainMs"> & { readonly upstream: ClusterUpstream };

export function createClusterApi({ name, drainMs, upstream }: Upstreamed, deps: ClusterApiDeps): ApiServer {
  const { session, home, reach, memory, pace, places, clock } = deps;
  const { timeouts = DEFAULT_TIMEOUTS } = deps.upstream ?? {};
  const api = createApiServer({
    ...deps,
    ...deps.upstream,
    registry: new Registry(), // its series would have the names of those at home
    apiServer: upstream.url,
    trust: fixedTrust(upstream.ca, upstream.serverName),
    timeouts: { ...timeouts, abandonedMs: drainMs },
    readAnswer: (body) => pace(name, sharedBody(body, memory.share)),
    mayWrite: () => (home.leftMs() > 0 ? undefined : unproven(name, home)),
  });
  /** The call counts as a write in flight until `drainMs` after the result is called. */
  const beginWrite = ({ info }: Call): (() => void) => {
    if (!isWrite(info)) return () => undefined;
    const isInOnePlace = info.namespace !== "" || info.verb !== "deletecollection";
    const done = isInOnePlace
      ? session.beginWrite(governingPlace(info.group, info.resource, info), info, reachOf(info, "unknown"))
      : session.beginWrite(info.namespace);
    return () => void clock.after(drainMs, done);
  };
  const send: Handler = async (call) => {
    const refusal = isWrite(call.info) ? undefined : memory.refusal();
    if (refusal !== undefined) throw refusal;
    try {
      const reply = await api.send(call);
      reach.note(name, undefined);
      return reply;
    } catch (error) {
      if (isMeshError(error, "UPSTREAM_UNREACHABLE")) reach.note(name, error.message);
      else if (mayHaveArrived(error)) beginWrite(call)();
      throw error;
    }
  };
  const tunnels = createClusterTunnels({ name, api, places, clock, beginWrite });
  const stop = (): Promise<void> => {
    tunnels.stop();
    return api.stop();
  };
  return { ...api, send, upgrade: tunnels.upgrade, stop };
}

function isWrite(info: RequestInfo): info is ResourceInfo {
  return info.kind === "resource" && isAct(info);
}

function mayHaveArrived(error: unknown): boolean {
  return ["UPSTREAM_BROKEN", "UPSTREAM_TIMEOUT", "ABORTED", "REQUEST_BODY_BROKEN"].some((code) => isMeshError(error, code));
}

function unproven(cluster: string, home: Pick<HomeProof, "authorization">): StatusError {
  const message = `ctrlmesh: cluster ${JSON.stringify(cluster)} is closed for writes: ${whyUnproven(home)}`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: 1 });
}

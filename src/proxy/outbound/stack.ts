// The layers that the operator's calls of the Kubernetes API pass, outermost first. Each may change the call
// on its way in and the reply on its way out. How to add a layer: docs/design.md.
import type { ProcessContext } from "../../base/process-context.ts";
import { createMoveLog } from "../../mesh/moves/move-log.ts";
import type { ApiServer } from "../api-server/api-server.ts";
import type { Call, Layer } from "../call/call.ts";
import type { StreamMetrics } from "../filter/stream-metrics.ts";
import type { HomeProof } from "../home/home-proof.ts";
import type { NamedLayer } from "../http/compose-stack.ts";
import type { Reply } from "../http/handler.ts";
import type { AccessLog } from "../observe/access-log.ts";
import type { ProxyMetrics } from "../observe/metrics.ts";
import type { Policies } from "../policies/policies.ts";
import type { ManagerSession, Session } from "../session/session.ts";
import { caller, excludedCallers } from "./caller.ts";
import { census } from "./census.ts";
import { declineWebSocketWatch } from "./decline-websocket-watch.ts";
import { election } from "./election/election.ts";
import { type LockGate, lockGate } from "./election/lock-gate.ts";
import { fault } from "./fault.ts";
import { isolate } from "./isolate/isolate.ts";
import { limit, settle } from "./limit.ts";
import type { PlanLog } from "./lists/plan-log.ts";
import { observe } from "./observe.ts";
import { oneApi } from "./one-api.ts";
import { requestInfo } from "./request-info.ts";
import { requireSnapshot } from "./require-snapshot.ts";
import { rescue } from "./rescue.ts";
import { strip } from "./strip.ts";
import { upstream } from "./upstream.ts";

export interface StackDeps extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly session: Pick<ManagerSession, keyof Session | "report" | "memory">;
  readonly apiServer: Pick<ApiServer, "send" | "upgrade" | "discovery" | "features">;
  readonly metrics: ProxyMetrics;
  readonly streamMetrics: StreamMetrics;
  readonly policies: Policies;
  readonly plans: PlanLog;
  readonly accessLog: AccessLog;
  /** `election` opens and closes it, `lock-gate` asks it. */
  readonly gate: LockGate;
  readonly podName: string;
  /** Absent: nobody asks whether the API server accepts the pod. */
  readonly home?: Pick<HomeProof, "mark" | "answered"> | undefined;
  /** The API server is that of another cluster. The lock is at home, and so are the objects that the census counts. Absent is false. */
  readonly isAbroad?: boolean | undefined;
}

export function outboundLayers(deps: StackDeps): readonly NamedLayer<Call, Reply>[] {
  const { session, apiServer, home, isAbroad = false, metrics, streamMetrics, gate, clock, log } = deps;
  const atHome = (name: string, make: () => Layer) => (isAbroad ? [] : [{ name, layer: make() }]);
  // Follows the routes before the watches of the layers do.
  const moves = createMoveLog(session, session.memory.moves);
  return [
    // Outermost, so that every error inside becomes a Status.
    { name: "rescue", layer: rescue(log) },
    // Outside of all that may refuse, so that refusals are counted and timed like answers.
    { name: "observe", layer: observe(deps) },
    // Nothing decides about a request line that cannot be read with certainty.
    { name: "request-info", layer: requestInfo },
    // Outside of the filters: they cannot read the frames of a WebSocket.
    { name: "decline-websocket-watch", layer: declineWebSocketWatch },
    // Before all decisions: without routes nothing may pass, not even what needs none.
    { name: "require-snapshot", layer: requireSnapshot(session) },
    // Before the decisions that depend on the caller.
    { name: "caller", layer: caller({ session }) },
    // Outside of the layers that filter and rename, so that it works on what the operator gets.
    { name: "strip", layer: strip({ session, stripped: metrics.strippedBytes }) },
    ...(isAbroad ? [{ name: "one-api", layer: oneApi }] : []),
    // Renames the lock, and marks its calls: the layers behind neither limit nor narrow them.
    ...atHome("election", () => election({ session, report: session.report, clock, log, gate })),
    // Before isolate, so that the routes at the end of a delay decide. Behind election, which marks the lock.
    { name: "fault", layer: fault(deps) },
    // Outside of all that may send several requests, and behind fault, whose delay is not the API server's.
    { name: "settle", layer: settle(deps) },
    // Behind fault and settle, since its lists are the proxy's own. Before isolate, so that they show the pod's part.
    ...atHome("census", () => census(deps)),
    // Before isolate, which lets excluded callers pass. Behind election: they may use the lock.
    { name: "excluded-callers", layer: excludedCallers({ ...deps, metrics: streamMetrics, moves }) },
    // Behind all that changes or filters, so that no layer widens what it has narrowed.
    { name: "isolate", layer: isolate({ ...deps, ...apiServer, metrics: streamMetrics, moves }) },
    // Behind isolate, where a write may have waited until the lock has another name.
    { name: "lock-gate", layer: lockGate(gate) },
    // Behind all that refuses, answers or waits: only what reaches the API server costs a token.
    { name: "limit", layer: limit(deps) },
    { name: "upstream", layer: upstream(apiServer, home) },
  ];
}

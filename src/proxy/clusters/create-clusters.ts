// Serves requests to other clusters whose namespaces the app divides: each cluster has a stack of layers of its own, with its own
// connections, route table and log of moves, so that none waits for another. Invariant: a cluster is served only while the routes in
// force have its upstream and its table.

import { createPlaces } from "../../base/connection-places.ts";
import type { Registry } from "../../base/metrics.ts";
import { StatusError } from "../../kube/status.ts";
import { LOST_MOVES } from "../../mesh/moves/stored-moves.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { RawHandler } from "../call/call.ts";
import { composeStack } from "../http/compose-stack.ts";
import { createFairPace } from "../http/fair-pace.ts";
import { clusterPathOf, PROXY_PATH } from "../outbound/cluster-path.ts";
import type { StackParts } from "../outbound/create-outbound.ts";
import { rescue } from "../outbound/rescue.ts";
import { outboundLayers } from "../outbound/stack.ts";
import { NO_MEMORY } from "../session/memory.ts";
import type { ManagerSession } from "../session/session.ts";
import { createAnswerMemory } from "./answer-memory.ts";
import { type ClusterApiDeps, createClusterApi, type Upstreamed } from "./cluster-api.ts";
import { createClusterMetrics } from "./cluster-metrics.ts";
import { MAX_TUNNELS } from "./cluster-tunnels.ts";
import { createStackSession } from "./stack-session.ts";

export interface ClustersDeps extends StackParts, Omit<ClusterApiDeps, "session" | "home" | "memory" | "pace" | "places"> {
  readonly session: ManagerSession;
  readonly registry: Registry;
  /** Absent: the proxy does not see what the pod sends to other servers, so it serves no cluster. */
  readonly home: ClusterApiDeps["home"] | undefined;
}

interface Served {
  /** What the stack was made of. */
  readonly route: string;
  readonly handler: RawHandler;
  stop(): Promise<void>;
}

export function createClusters(deps: ClustersDeps) {
  const { session, home, log, clock } = deps;
  const served = new Map<string, Served>();
  const counted = createClusterMetrics(deps.registry);
  const memory = createAnswerMemory({ clock, log });
  const pace = createFairPace();
  const places = createPlaces({ max: MAX_TUNNELS, clock });
  const end = (name: string) => {
    const ended = served.get(name);
    served.delete(name);
    counted.forget(name);
    memory.forget(name);
    ended?.stop().catch((error: unknown) => log.warn({ err: error, cluster: name }, "closing connections failed"));
  };
  const begin = (cluster: Upstreamed, route: string, proof: ClusterApiDeps["home"]): Served => {
    const routes = createStackSession(session.inside(cluster.name));
    const inside = Object.assign(routes.session, { report: session.report, memory: memoryOf(session) });
    const own = { session: inside, home: proof, memory: memory.of(cluster.name) };
    const apiServer = createClusterApi(cluster, { ...deps, ...own, pace, places });
    const layers = outboundLayers({ ...deps, session: inside, apiServer, home: undefined, isAbroad: true });
    const stop = () => {
      const stopped = apiServer.stop();
      routes.end();
      return stopped;
    };
    return { route, handler: composeStack(layers, clock) as RawHandler, stop };
  };
  const follow = ({ clusters = [], clusterTables }: RoutedClusters) => {
    const routes = new Map(
      clusters.flatMap((cluster) => (isUpstreamed(cluster) && clusterTables?.has(cluster.name) ? [[cluster.name, cluster]] : [])),
    );
    for (const [name, { route }] of served) if (routeText(routes.get(name)) !== route) end(name);
    for (const [name, cluster] of routes)
      if (home !== undefined && !served.has(name)) served.set(name, begin(cluster, routeText(cluster), home));
  };
  session.onChange(({ snapshot }) => follow(snapshot));
  if (session.current !== undefined) follow(session.current.snapshot);

  const dispatch: RawHandler = async (call) => {
    const path = clusterPathOf(call.target);
    const name = path?.cluster ?? "";
    const cluster = served.get(name);
    if (cluster === undefined) throw notServed(name, session.current?.snapshot, home !== undefined);
    call.record.cluster = name;
    const reply = await cluster.handler({ ...call, target: path?.target ?? "/" });
    if (served.get(name) === cluster) counted.answered(name, reply.status);
    return reply;
  };
  const rescued = rescue(log)(dispatch);
  return {
    /** Serves requests to clusters, and leaves all others to the handler. */
    around:
      (atHome: RawHandler): RawHandler =>
      (call) =>
        call.target.startsWith(PROXY_PATH) ? rescued(call) : atHome(call),
    stop(): void {
      for (const name of [...served.keys()]) end(name);
    },
  };
}

/** After a restart of the proxy, clients list again: nobody has stored what has moved in other clusters. */
function memoryOf({ memory }: ManagerSession): ManagerSession["memory"] {
  const before = memory.moves.before === undefined ? undefined : LOST_MOVES;
  return { ...NO_MEMORY, moves: { ...NO_MEMORY.moves, before } };
}

interface RoutedClusters {
  readonly clusters?: readonly ClusterRoute[] | undefined;
  readonly clusterTables?: { has(name: string): boolean } | undefined;
}

function isUpstreamed(cluster: ClusterRoute): cluster is ClusterRoute & Upstreamed {
  return cluster.upstream !== undefined;
}

function routeText(cluster: Upstreamed | undefined): string {
  return cluster === undefined ? "" : JSON.stringify([cluster.upstream, cluster.drainMs]);
}

/** @param snapshot the routes in force; undefined before the first */
function notServed(name: string, snapshot: RoutedClusters | undefined, seesEgress: boolean): StatusError {
  const called = `ctrlmesh: cluster ${JSON.stringify(name)}`;
  const notYet = (why: string) => new StatusError("ServiceUnavailable", `${called} ${why}`, { retryAfterSeconds: 1 });
  if (snapshot === undefined) return notYet("is not served yet: this pod has no routes yet");
  if (snapshot.clusters === undefined) return notYet("is not served: no rule of this pod's app is about other clusters");
  const cluster = snapshot.clusters.find((each) => each.name === name);
  if (cluster === undefined) return new StatusError("NotFound", `${called} is not one that the app of this pod divides`);
  if (cluster.upstream === undefined) {
    const interception = cluster.isOpen ? "None" : "Tunnel";
    return new StatusError("NotFound", `${called} has interception ${interception}: connect to its own servers`);
  }
  if (!seesEgress) return notYet("is not served: the pod needs the annotation ctrlmesh.kruise.io/egress");
  return notYet("is not served yet: the manager has not listed its namespaces");
}

// The proxy's session with the manager: one object that the pipeline asks (Session), tells who leads
// (LeaderSink) and the process runs (Runnable). It is ready at once: with the stored snapshot, or without one
// until the manager sends it.
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { BackoffOptions } from "../../base/backoff.ts";
import type { Clock, Random } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import type { Registry } from "../../base/metrics.ts";
import type { PodRef } from "../../wire/messages.ts";
import { PEERS } from "../../wire/peer-type.ts";
import { POLICY } from "../../wire/policy-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import { createPlainAccess, type ManagerAccess } from "../identity/manager-access.ts";
import { createPolicies, type Policies } from "../policies/policies.ts";
import { createPolicyFile } from "../policies/policy-file.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import { createCleanEnd } from "./clean-end.ts";
import { createEnforcer } from "./enforcer.ts";
import { createMeshClient } from "./mesh-client.ts";
import { createPeersHandler, type Peers } from "./peers-handler.ts";
import { createPolicyHandler } from "./policy-handler.ts";
import { greetingOf } from "./registration.ts";
import { createReporter, type Reporter } from "./reporter.ts";
import { capabilitiesOf, type ResourceHandlers } from "./resource-handler.ts";
import { createRouteHandler } from "./route-handler.ts";
import type { GateKeeper, LeaderSink, ManagerContact, MoveKeeper, Session, Waiting, WebhookSink } from "./session.ts";
import { createSessionMetrics } from "./session-metrics.ts";
import { createSnapshotFile, type LockMemory, type MovesMemory } from "./snapshot-file.ts";
import { LOST_MOVES } from "./stored-moves.ts";
import { createStreamLedger } from "./stream-ledger.ts";

export interface SessionConfig {
  /** host:port of the manager's gRPC service. */
  readonly manager: string;
  readonly podNamespace: string;
  readonly podName: string;
  /** "" if not known. */
  readonly podUid: string;
  /** Folder for the last good snapshot; the proxy's own. */
  readonly dataDir: string;
  /** The listener for the operator's webhooks; undefined: there is none, and no peers are asked for. */
  readonly webhooks?: unknown;
}

export interface SessionDeps {
  readonly config: SessionConfig;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly registry: Registry;
  /** How to trust the manager and prove who we are; default plain text, for the loopback only. */
  readonly access?: ManagerAccess;
  readonly proxyVersion?: string;
  readonly backoff?: BackoffOptions;
}

/** Name of the stored snapshot in the data folder. */
const SNAPSHOT_FILE_NAME = "snapshot.json";
/** Name of the file with the last good policies and the open breakers. */
const POLICY_FILE_NAME = "policies.json";
/** Name of the file with the bound of the streams' numbers, and the promised epoch. */
const STREAM_FILE_NAME = "stream";
/** Name of the file that says that the process before ended with no write under way. */
const CLEAN_END_FILE_NAME = "clean-end";

/** What the manager sends beside the routes. */
export interface SentBeside {
  readonly policies: Policies;
  readonly peers: Peers;
}

export function createSession(
  deps: SessionDeps,
): Session & SentBeside & ManagerContact & Waiting & LeaderSink & WebhookSink & GateKeeper & MoveKeeper & Runnable {
  const { config, log, clock, random } = deps;
  const pod: PodRef = { namespace: config.podNamespace, name: config.podName, uid: config.podUid };
  const metrics = createSessionMetrics(deps.registry);
  const enforcer = createEnforcer((error) => log.error({ err: error }, "a part of the proxy failed to follow a new route"));
  const stopping = new AbortController();
  const lock: LockMemory = { before: undefined, closed: undefined, longestLeaseMs: undefined };
  const moves: MovesMemory = { before: undefined, read: () => LOST_MOVES };
  const file = createSnapshotFile({ path: join(config.dataDir, SNAPSHOT_FILE_NAME), pod, log, lock, moves });
  const cleanEnd = createCleanEnd({ path: join(config.dataDir, CLEAN_END_FILE_NAME), pod, log });
  const streams = createStreamLedger({
    path: join(config.dataDir, STREAM_FILE_NAME),
    clock,
    log,
    unstored: metrics.promiseUnstored,
  });
  const routeHandler = createRouteHandler({ pod, enforcer, file, metrics, clock, log, signal: stopping.signal });
  const policies = createPolicies({
    ...{ clock, random, metrics: createPolicyMetrics(deps.registry) },
    managerAwayMs: () => client.managerAwayMs,
  });
  const policyFile = createPolicyFile({ path: join(config.dataDir, POLICY_FILE_NAME), pod, log });
  const policyHandler = createPolicyHandler({
    ...{ policies, file: policyFile, log },
    tell: (report) => reporter.tell("policies", report),
  });
  const peersHandler = createPeersHandler(pod.uid, log);
  const handlers: ResourceHandlers = {
    [ROUTE.name]: routeHandler,
    [POLICY.name]: policyHandler,
    ...(config.webhooks === undefined ? {} : { [PEERS.name]: peersHandler }),
  };
  const facts = { pod, proxyVersion: deps.proxyVersion ?? "", capabilities: capabilitiesOf(handlers) };
  const client = createMeshClient({
    manager: config.manager,
    access: deps.access ?? createPlainAccess(),
    handlers,
    async registration() {
      const streamNumber = await streams.next();
      const version = enforcer.current?.snapshot.version ?? 0;
      return greetingOf({ ...facts, streamNumber, epoch: streams.epoch, version, claims: routeHandler.claims });
    },
    promise: streams.promise,
    reports: () => reporter.all,
    metrics,
    clock,
    random,
    log,
    ...(deps.backoff === undefined ? {} : { backoff: deps.backoff }),
  });
  const reporter: Reporter = createReporter(clock, client.report);
  enforcer.onBacklogChange(() => {
    const { heldNamespaces, drainingWrites } = enforcer;
    reporter.tell("backlog", { heldNamespaces, drainingWrites });
  });
  let running: Promise<void> = Promise.resolve();
  const connect = async () => {
    if (enforcer.current !== undefined) await streams.outlastOlderLeaders(stopping.signal);
    await client.run(stopping.signal);
  };
  let life: "before" | "runs" | "over" = "before";
  /** It serves since its start, by what was stored. */
  let isRestored = false;
  const awaited = () => {
    if (enforcer.current === undefined) return "snapshot";
    return policyHandler.isAwaited && !isRestored ? "policies" : undefined;
  };

  return {
    name: "session",
    policies,
    peers: peersHandler.peers,
    get current() {
      // After the word of a clean end no write may begin, whoever still asks.
      return life === "over" || awaited() !== undefined ? undefined : enforcer.current;
    },
    get awaited() {
      return awaited();
    },
    get trouble() {
      return client.trouble;
    },
    onChange: enforcer.onChange,
    beginWrite: enforcer.beginWrite,
    beginHold: enforcer.beginHold,
    setLeader(value) {
      metrics.leader.set(value ? 1 : 0);
      reporter.tell("leader", value);
    },
    setLockAccess: (access) => reporter.tell("lock", access),
    setWebhookProblem: (problem) => reporter.tell("webhookProblem", problem),
    setUnnamedLock: (lock) => reporter.tell("unnamedLock", lock),
    get movesBefore() {
      return moves.before;
    },
    keepMoves(read) {
      moves.read = read;
    },
    get lockBefore() {
      return lock.before;
    },
    keepGate(closed) {
      if (isDeepStrictEqual(closed, lock.closed)) return;
      lock.closed = closed;
      routeHandler.storeAgain();
    },
    keepLease(longestLeaseMs) {
      if (longestLeaseMs === lock.longestLeaseMs) return;
      lock.longestLeaseMs = longestLeaseMs;
      routeHandler.storeAgain();
    },
    async start(signal) {
      const endedCleanly = await cleanEnd.take();
      await streams.open();
      // An earlier process may have served although it has left no moves.
      if (streams.hasPromised) moves.before = LOST_MOVES;
      await routeHandler.restore(endedCleanly, streams.hasPromised);
      await policyHandler.restore();
      isRestored = enforcer.current !== undefined;
      life = "runs";
      // Not ended by `signal` itself: while the process drains, what is enforced still follows the manager.
      if (signal.aborted) return;
      running = connect();
      running.catch((error: unknown) => log.error({ err: error }, "session ended"));
    },
    async stop() {
      stopping.abort();
      reporter.stop();
      await running.catch(() => undefined);
      await Promise.all([routeHandler.idle(), policyFile.idle()]);
      const hasRun = life === "runs";
      life = "over";
      if (hasRun && enforcer.isQuiet && routeHandler.isSettled) await cleanEnd.leave();
    },
  };
}

// Puts the session with the manager together. Invariant: it starts without the manager, with the stored
// snapshot, or without one until the manager sends it.
import type { BackoffOptions } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { BUDGET } from "../../mesh/contract/budget-type.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import { PEERS } from "../../mesh/contract/peer-type.ts";
import { POLICY } from "../../mesh/contract/policy-type.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import { greetingOf } from "../../mesh/link/registration.ts";
import { createPlainAccess, type ManagerAccess } from "../identity/manager-access.ts";
import { createBreakerFile } from "../policies/breaker-file.ts";
import { createPolicies } from "../policies/policies.ts";
import { createPolicyFile } from "../policies/policy-file.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { createBudgetHandler } from "./budget-handler.ts";
import { leaveCleanEnd, takeCleanEnd } from "./clean-end.ts";
import { createEnforcers } from "./cluster-enforcers.ts";
import { countingLast, createLastWrites } from "./last-writes.ts";
import { createMeshClient } from "./mesh-client.ts";
import { createPeersHandler } from "./peers-handler.ts";
import { createPolicyHandler } from "./policy-handler.ts";
import { createReporter } from "./reporter.ts";
import { capabilitiesOf, type ResourceHandlers } from "./resource-handler.ts";
import { createRouteHandler } from "./route-handler.ts";
import type { ManagerSession } from "./session.ts";
import { createSessionMetrics } from "./session-metrics.ts";
import { createSnapshotFile } from "./snapshot-file.ts";
import { createStreamLedger } from "./stream-ledger.ts";

export interface SessionConfig {
  /** host:port */
  readonly manager: string;
  readonly podNamespace: string;
  readonly podName: string;
  /** "" if unknown. */
  readonly podUid: string;
  /** Undefined: no peers are asked for. */
  readonly webhooks?: unknown;
  /** Undefined: the proxy does not see what the pod sends to other servers, so it enforces nothing about clusters. */
  readonly egressListen?: unknown;
}

export interface SessionDeps extends ProcessContext {
  readonly config: SessionConfig;
  readonly state: StateFolder;
  /** Default plain text, for the loopback only. */
  readonly access?: ManagerAccess;
  readonly proxyVersion?: string;
  readonly backoff?: BackoffOptions;
}

export function createSession(deps: SessionDeps): ManagerSession {
  const { config, state, log, clock, random } = deps;
  const pod: PodRef = { namespace: config.podNamespace, name: config.podName, uid: config.podUid };
  const metrics = createSessionMetrics(deps.registry);
  const enforcer = createEnforcers((error) => log.error({ err: error }, "a part of the proxy failed to follow a new route"));
  const lastWrites = createLastWrites(clock);
  const stopping = new AbortController();
  const file = createSnapshotFile(state, pod, log, () => routeHandler.storeAgain());
  const streams = createStreamLedger({ slot: state.stream, clock, log, unstored: metrics.promiseUnstored });
  const routeHandler = createRouteHandler({
    pod,
    seesEgress: config.egressListen !== undefined,
    enforcer,
    lastWrites,
    file,
    metrics,
    clock,
    log,
    signal: stopping.signal,
  });
  const policies = createPolicies({
    clock,
    random,
    log,
    metrics: createPolicyMetrics(deps.registry),
    managerAwayMs: () => client.managerAwayMs,
  });
  const policyFile = createPolicyFile(state, pod, log);
  const breakerFile = createBreakerFile(state, pod, log);
  const policyHandler = createPolicyHandler({
    policies,
    file: policyFile,
    breakers: breakerFile,
    report: (report) => reporter.report("policies", report),
    log,
  });
  const budgetHandler = createBudgetHandler({
    policies,
    slot: state.budget,
    pod,
    report: (report) => reporter.report("shares", report),
    clock,
    log,
  });
  const peersHandler = createPeersHandler(pod.uid, log);
  const handlers: ResourceHandlers = {
    [ROUTE.name]: routeHandler,
    [POLICY.name]: policyHandler,
    [BUDGET.name]: budgetHandler,
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
    backoff: deps.backoff,
  });
  const reporter = createReporter(clock, client.report);
  enforcer.onBacklogChange(() => {
    const { heldNamespaces, drainingWrites } = enforcer;
    reporter.report("backlog", { heldNamespaces, drainingWrites });
  });
  let running: Promise<void> = Promise.resolve();
  const connect = async () => {
    // Also without routes: others may write by routes of the leader that the process before has promised to follow.
    if (enforcer.current !== undefined || streams.hasPromised) await streams.outlastOlderLeaders(stopping.signal);
    await client.run(stopping.signal);
  };
  let life: "before" | "runs" | "over" = "before";
  const awaited = () => {
    if (enforcer.current === undefined) return "snapshot";
    return policyHandler.isAwaited ? "policies" : undefined;
  };

  const serves = () => life !== "over" && awaited() === undefined;

  return {
    name: "session",
    policies,
    peers: peersHandler.peers,
    get current() {
      // After the marker of a clean end no write may begin, whoever still asks.
      return serves() ? enforcer.current : undefined;
    },
    get awaited() {
      return awaited();
    },
    get trouble() {
      return client.trouble;
    },
    onChange: enforcer.onChange,
    beginWrite: countingLast(lastWrites, enforcer.beginWrite),
    beginHold: enforcer.beginHold,
    beginRenewal: enforcer.beginRenewal,
    beginEgress: enforcer.beginEgress,
    inside(cluster) {
      const session = enforcer.inside(cluster);
      return Object.defineProperty({ ...session }, "current", { get: () => (serves() ? session.current : undefined) });
    },
    memory: { lock: file.lock, moves: file.moves },
    report(kind, value) {
      if (kind === "leader") metrics.leader.set(value ? 1 : 0);
      reporter.report(kind, value);
    },
    async start(signal) {
      const endedCleanly = await takeCleanEnd(state.cleanEnd, pod, log);
      await streams.open();
      await routeHandler.restore(endedCleanly, streams.hasPromised);
      await policyHandler.restore();
      await budgetHandler.restore();
      life = "runs";
      // `signal` does not end the session: while the process drains, it still follows the manager.
      if (signal.aborted) return;
      running = connect();
      running.catch((error: unknown) => log.error({ err: error }, "session with the manager stopped unexpectedly"));
    },
    async stop() {
      stopping.abort();
      reporter.stop();
      await running.catch(() => undefined);
      await Promise.all([routeHandler.idle(), policyFile.idle(), breakerFile.idle(), budgetHandler.idle()]);
      const hasRun = life === "runs";
      life = "over";
      if (hasRun && enforcer.isQuiet && routeHandler.isSettled) await leaveCleanEnd(state.cleanEnd, pod);
    },
  };
}

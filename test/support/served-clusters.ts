// What serves other clusters in the proxy, with routes that the test sets, and without the proxy's own servers.
import { type Clock, systemRandom } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { type CallRecord, createRecord, type RawCall } from "../../src/proxy/call/call.ts";
import type { ClusterApiDeps } from "../../src/proxy/clusters/cluster-api.ts";
import { createClusters } from "../../src/proxy/clusters/create-clusters.ts";
import { createStreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import { asSource } from "../../src/proxy/http/byte-stream.ts";
import { CallAbort } from "../../src/proxy/http/call-signal.ts";
import { createAccessLog } from "../../src/proxy/observe/access-log.ts";
import { createClusterReach } from "../../src/proxy/observe/cluster-reach.ts";
import { createProxyMetrics } from "../../src/proxy/observe/metrics.ts";
import { createLockGate } from "../../src/proxy/outbound/election/lock-gate.ts";
import { createPlanLog } from "../../src/proxy/outbound/lists/plan-log.ts";
import { createPolicies } from "../../src/proxy/policies/policies.ts";
import { createPolicyMetrics } from "../../src/proxy/policies/policy-metrics.ts";
import { createEnforcers } from "../../src/proxy/session/cluster-enforcers.ts";
import { NO_MEMORY } from "../../src/proxy/session/memory.ts";
import type { ManagerSession } from "../../src/proxy/session/session.ts";

interface ServedClustersOptions<C extends Clock> {
  readonly clock: C;
  readonly home: ClusterApiDeps["home"] | undefined;
  readonly onReport?: (seen: unknown) => void;
}

interface SendOptions {
  readonly body?: string;
  readonly upgrade?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function serveClusters<C extends Clock>({ clock, home, onReport = () => undefined }: ServedClustersOptions<C>) {
  const log = silentLogger();
  const enforcers = createEnforcers();
  const session = Object.assign(Object.create(enforcers), {
    memory: NO_MEMORY,
    report: () => undefined,
    onChange: enforcers.onChange,
    inside: enforcers.inside,
  }) as ManagerSession;
  const registry = new Registry();
  const clusters = createClusters({
    session,
    registry,
    home,
    reach: createClusterReach({ session, clock, report: onReport }),
    clock,
    random: systemRandom,
    log,
    metrics: createProxyMetrics(registry),
    streamMetrics: createStreamMetrics(registry),
    policies: createPolicies({
      clock,
      random: systemRandom,
      log,
      metrics: createPolicyMetrics(registry),
      managerAwayMs: () => 0,
    }),
    plans: createPlanLog(clock),
    gate: createLockGate(clock, NO_MEMORY.lock),
    accessLog: createAccessLog({ share: 0, random: systemRandom, log }),
    podName: "pod",
  });
  const atHome: string[] = [];
  const handler = clusters.around(async (call) => {
    atHome.push(call.target);
    return { status: 200, headers: {}, body: null };
  });
  const send = (method: string, target: string, { body, upgrade, headers }: SendOptions = {}) => {
    const signal = new CallAbort();
    const call: RawCall & { record: CallRecord } = {
      method,
      target,
      headers: { authorization: "Bearer of-eu", ...(body && { "content-type": "application/json" }), ...headers },
      body: body === undefined ? null : asSource(Buffer.from(body)),
      signal,
      record: createRecord(),
      ...(upgrade && { upgrade }),
    };
    return { reply: handler(call), signal };
  };
  return { clusters, enforcers, clock, send, atHome, registry };
}

import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { upgraded } from "../../../test/support/layer-call.ts";
import { silentLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import { createServerFeatures } from "../api-server/discovery.ts";
import { createStreamMetrics } from "../filter/stream-metrics.ts";
import { createAccessLog } from "../observe/access-log.ts";
import { createProxyMetrics } from "../observe/metrics.ts";
import { createPolicies } from "../policies/policies.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { NO_MEMORY } from "../session/memory.ts";
import { createLockGate } from "./election/lock-gate.ts";
import { createPlanLog } from "./lists/plan-log.ts";
import { outboundLayers } from "./stack.ts";

function layerNames(): string[] {
  const [clock, random, log, registry] = [createFakeClock(), () => 0, silentLogger(), createRegistry("proxy", "test")];
  const metrics = createProxyMetrics(registry);
  metrics.stop();
  const session = Object.assign(createEnforcer(), {
    report: () => undefined,
    memory: NO_MEMORY,
  });
  const apiServer = {
    send: () => Promise.reject(new Error("nothing is sent")),
    upgrade: upgraded,
    discovery: { scopeOf: async () => "unknown" as const },
    features: createServerFeatures(clock),
  };
  const accessLog = createAccessLog({ share: 0, random, log });
  const [streamMetrics, plans] = [createStreamMetrics(registry), createPlanLog(clock)];
  const policies = createPolicies({ clock, random, log, managerAwayMs: () => 0, metrics: createPolicyMetrics(registry) });
  return outboundLayers({
    session,
    policies,
    apiServer,
    metrics,
    streamMetrics,
    plans,
    gate: createLockGate(clock, NO_MEMORY.lock),
    accessLog,
    clock,
    random,
    log,
    podName: "app-0",
  }).map(({ name }) => name);
}

it("has one name for each layer, since the names are labels", () => {
  const names = layerNames();
  expect(new Set(names).size).toBe(names.length);
});

it("puts only layers that need no request line before request-info", () => {
  expect(layerNames().slice(0, 3)).toEqual(["rescue", "observe", "request-info"]);
});

it("marks lock traffic and excludes callers before it isolates, and asks the gate last", () => {
  const names = layerNames();
  const order = ["caller", "election", "fault", "settle", "excluded-callers", "isolate", "lock-gate", "limit", "upstream"];
  expect(names.filter((name) => order.includes(name))).toEqual(order);
  expect(names.at(-1)).toBe("upstream");
});

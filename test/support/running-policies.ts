// Policies of a proxy for unit tests, on a fake clock and with random numbers of the test's choice.
import { type Logger, silentLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { enforced } from "../../src/mesh/ownership/enforced.ts";
import type { PolicySet } from "../../src/policy/policy.ts";
import { createPolicies } from "../../src/proxy/policies/policies.ts";
import { createPolicyMetrics } from "../../src/proxy/policies/policy-metrics.ts";
import { createFakeClock } from "./fake-clock.ts";
import { snapshot, table } from "./route-table.ts";

export function runningPolicies(set: Partial<PolicySet> = {}, log: Logger = silentLogger()) {
  const clock = createFakeClock();
  const registry = createRegistry("proxy", "test");
  const manager = { awayMs: 0 };
  const random = { next: 0 };
  const policies = createPolicies({
    clock,
    random: () => random.next,
    log,
    managerAwayMs: () => manager.awayMs,
    metrics: createPolicyMetrics(registry),
  });
  policies.enforce({ limits: [], faults: [], egress: [], ...set }, "digest");
  /** The pod is in the namespace shop. */
  const session = { current: enforced(snapshot(table([], {}))) };
  return { session, policies, clock, registry, manager, random };
}

// Policies of a proxy for unit tests, on a fake clock and with random numbers of the test's choice.
import { createRegistry } from "../../src/base/metrics.ts";
import type { PolicySet } from "../../src/policy/policy.ts";
import { createPolicies } from "../../src/proxy/policies/policies.ts";
import { createPolicyMetrics } from "../../src/proxy/policies/policy-metrics.ts";
import { createFakeClock } from "./fake-clock.ts";

export function runningPolicies(set: Partial<PolicySet> = {}) {
  const clock = createFakeClock();
  const registry = createRegistry("proxy", "test");
  const manager = { awayMs: 0 };
  const random = { next: 0 };
  const policies = createPolicies({
    clock,
    random: () => random.next,
    managerAwayMs: () => manager.awayMs,
    metrics: createPolicyMetrics(registry),
  });
  policies.enforce({ limits: [], faults: [], egress: [], ...set }, "digest");
  return { policies, clock, registry, manager, random };
}

// CircuitBreaker as a policy kind: it selects pods by their labels.
import { BREAKER_DISABLED, type CircuitBreaker, validateCircuitBreaker } from "../../api/circuit-breaker.ts";
import { CIRCUIT_BREAKERS } from "../../api/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { compileCircuitBreaker } from "./compile-circuit-breaker.ts";
import { createPolicyKind, switchedOff } from "./create-policy-kind.ts";

export const circuitBreakerKind = createPolicyKind({
  resource: CIRCUIT_BREAKERS,
  validate: validateCircuitBreaker,
  offReason: (breaker) => switchedOff(breaker, BREAKER_DISABLED),
  rulesOf: (breaker) => ({ limits: compileCircuitBreaker(breaker) }),
  isFor: ({ spec }, { labels }) => matchesSelector(spec.selector, labels),
  notSupported,
});

function notSupported({ spec: { rateLimitings = [], trafficInterceptRules = [] } }: CircuitBreaker): string[] {
  return [
    ...rateLimitings.flatMap(({ restRules = [] }, index) =>
      restRules.length > 0 ? [`spec.rateLimitings[${index}].restRules`] : [],
    ),
    ...(trafficInterceptRules.length > 0 ? ["spec.trafficInterceptRules"] : []),
  ];
}

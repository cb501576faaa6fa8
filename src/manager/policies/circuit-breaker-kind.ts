// CircuitBreaker as a policy kind: it selects pods by their labels.
import { BREAKER_DISABLED, type CircuitBreaker, validateCircuitBreaker } from "../../api/circuit-breaker.ts";
import { CIRCUIT_BREAKERS } from "../../api/resources.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import { compileCircuitBreaker } from "./compile-circuit-breaker.ts";
import { missesTunnels, seesNoTunnel } from "./compile-egress.ts";
import { createPolicyKind, switchedOff } from "./create-policy-kind.ts";

export const circuitBreakerKind = createPolicyKind({
  resource: CIRCUIT_BREAKERS,
  validate: validateCircuitBreaker,
  offReason: (breaker) => switchedOff(breaker, BREAKER_DISABLED),
  rulesOf: compileCircuitBreaker,
  isFor: ({ spec }, { labels }) => matchesSelector(spec.selector, labels),
  notes,
});

const TUNNEL = "does not match the tunnels (CONNECT) of HTTPS clients, in which method and path are encrypted";

function* notes({ spec: { rateLimitings = [], trafficInterceptRules = [] } }: CircuitBreaker): Iterable<string> {
  for (const [index, { properties = {}, restRules = [] }] of rateLimitings.entries()) {
    const path = `spec.rateLimitings[${index}]`;
    if (Object.keys(properties).length > 0) yield `${path}.properties has no effect`;
    for (const [at, rule] of restRules.entries()) {
      if (seesNoTunnel(rule)) yield `${path}.restRules[${at}] ${TUNNEL}; "https://host/*" with CONNECT does`;
    }
  }
  for (const [index, { methods }] of trafficInterceptRules.entries()) {
    if (missesTunnels(methods)) yield `spec.trafficInterceptRules[${index}] ${TUNNEL}; add CONNECT to methods`;
  }
}

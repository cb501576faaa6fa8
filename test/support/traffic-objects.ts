// Valid objects of the policy kinds for tests, and the problems that the validation finds.
import { validateCircuitBreaker } from "../../src/api/circuit-breaker.ts";
import { validateFaultInjection } from "../../src/api/fault-injection.ts";
import { formatProblem, type ValidationResult } from "../../src/api/problems.ts";
import { validateTrafficPolicy } from "../../src/api/traffic-policy.ts";

type Fields = Readonly<Record<string, unknown>>;

const metadata = { name: "guard", namespace: "ops", uid: "uid-1", generation: 1 };
export const PODS_RULE = { apiGroups: [""], resources: ["pods"], verbs: ["delete"], namespaces: ["*"] };

/** A new valid TrafficPolicy; `spec` replaces fields of its spec. */
export function sampleTrafficPolicy(spec: Fields = {}): Record<string, unknown> {
  return {
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "TrafficPolicy",
    metadata,
    spec: {
      targetVirtualApps: [{ name: "shop" }],
      rateLimiting: { ratePolicies: [{ rules: { resourceRules: [PODS_RULE] }, bucket: { qps: 2, burst: 5 } }] },
      ...spec,
    },
  };
}

/** A new valid CircuitBreaker; `limiting` replaces fields of its rule, and `spec` replaces fields of its spec. */
export function sampleCircuitBreaker(limiting: Fields = {}, spec: Fields = {}): Record<string, unknown> {
  const rule = {
    name: "delete-pods",
    resourceRules: [PODS_RULE],
    bucket: { burst: 5, interval: "10s", limit: 1 },
    triggerPolicy: "Normal",
    recoverPolicy: { type: "SleepingWindow", sleepingWindowSize: "10m" },
    ...limiting,
  };
  return {
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "CircuitBreaker",
    metadata,
    spec: { selector: { matchLabels: { app: "shop" } }, rateLimitings: [rule], ...spec },
  };
}

/** A new valid FaultInjection; `fault` replaces fields of its fault, and `spec` replaces fields of its spec. */
export function sampleFaultInjection(fault: Fields = {}, spec: Fields = {}): Record<string, unknown> {
  const rule = {
    name: "slow",
    delay: { fixedDelay: "300ms", percent: "50" },
    match: { resources: [PODS_RULE] },
    ...fault,
  };
  return {
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "FaultInjection",
    metadata,
    spec: { selector: { matchLabels: { app: "shop" } }, httpFault: [rule], ...spec },
  };
}

const VALIDATE: Readonly<Record<string, (object: unknown) => ValidationResult<unknown>>> = {
  TrafficPolicy: validateTrafficPolicy,
  CircuitBreaker: validateCircuitBreaker,
  FaultInjection: validateFaultInjection,
};

/** The problems of an object of this kind, one line each; empty if the object is valid. */
export function policyProblemsOf(kind: string, object: unknown): string[] {
  const result = VALIDATE[kind]?.(object);
  if (result === undefined) throw new Error(`no policy kind ${kind}`);
  return result.ok ? [] : result.problems.map(formatProblem);
}

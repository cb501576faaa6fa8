// The rules of a TrafficPolicy. Pure. Invariant: the name of a rule is the path of its field below `spec`, so
// each rule has one limiter and a name of its own. Called by traffic-policy-kind.ts.
import type { AdmissionRuleSpec, RatePolicy, TrafficPolicy, TrafficRequests } from "../../api/traffic-policy.ts";
import type { AdmissionRule, LimiterSpec, LimitRule, RequestMatch } from "../../policy/policy.ts";
import { compileResourcePolicyRule, modeOf, originOf } from "./compile-requests.ts";

export function compileTrafficPolicy({ metadata, spec }: TrafficPolicy): LimitRule[] {
  const ruleOf = (name: string, match: RequestMatch, limiter: LimiterSpec): LimitRule => ({
    origin: originOf("TrafficPolicy", metadata, name),
    mode: modeOf(spec),
    match,
    limiter,
    recovery: "",
  });
  const { apiServer, webhook } = spec.circuitBreaking ?? {};
  const admissions = (webhook?.admissionRules ?? []).map(compileAdmissionRule);
  const denied: readonly (readonly [name: string, match: RequestMatch])[] = [
    ...(apiServer === undefined ? [] : [["circuitBreaking.apiServer", matchOf(apiServer)] as const]),
    ...(admissions.length === 0 ? [] : [["circuitBreaking.webhook", { ...NO_REQUESTS, admissions }] as const]),
  ];
  const limited = (spec.rateLimiting?.ratePolicies ?? []).flatMap((policy, index) => {
    const path = `rateLimiting.ratePolicies[${index}]`;
    return limitersOf(policy).map(([field, limiter]) => ruleOf(`${path}.${field}`, matchOf(policy.rules), limiter));
  });
  return [...denied.map(([name, match]) => ruleOf(name, match, { kind: "deny" })), ...limited];
}

const NO_REQUESTS: RequestMatch = { resources: [], urls: [], http: [] };
const ALL: readonly string[] = ["*"];

function compileAdmissionRule(rule: AdmissionRuleSpec): AdmissionRule {
  const { apiGroups = ALL, apiVersions = ALL, operations = ALL, resources = ALL, scope = "*" } = rule;
  return { apiGroups, apiVersions, operations, resources, scope };
}

function limitersOf({ bucket, maxInFlight, exponentialBackoff }: RatePolicy): (readonly [field: string, LimiterSpec])[] {
  const limiters: (readonly [string, LimiterSpec | undefined])[] = [
    ["bucket", bucket && { kind: "bucket", perSecond: bucket.qps, burst: bucket.burst }],
    ["maxInFlight", maxInFlight === undefined ? undefined : { kind: "in-flight", max: maxInFlight }],
    ["exponentialBackoff", exponentialBackoff && backoffOf(exponentialBackoff)],
  ];
  return limiters.flatMap(([field, limiter]) => (limiter === undefined ? [] : [[field, limiter] as const]));
}

function backoffOf(backoff: NonNullable<RatePolicy["exponentialBackoff"]>): LimiterSpec {
  const { baseDelayInMillisecond, maxDelayInMillisecond, continuouslyFailureTimes = 0 } = backoff;
  // The spec counts the failures before the one that causes a wait.
  const failures = continuouslyFailureTimes + 1;
  return { kind: "backoff", baseMs: baseDelayInMillisecond, maxMs: maxDelayInMillisecond, failures };
}

function matchOf({ resourceRules = [], nonResourceRules = [] }: TrafficRequests): RequestMatch {
  return {
    resources: resourceRules.map(compileResourcePolicyRule),
    urls: nonResourceRules.flatMap(({ nonResourceURLs, verbs }) => {
      const methods = verbs.map((verb) => verb.toUpperCase());
      return nonResourceURLs.map((url) => ({ url, methods }));
    }),
    http: [],
  };
}

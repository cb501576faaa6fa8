// TrafficPolicy as a policy kind: it names apps and subsets. Invariant: the name of a rule is the path of its
// field below `spec`, so each rule has one limiter and a name of its own.
import { TRAFFIC_POLICIES } from "../../api/resources.ts";
import {
  type RatePolicy,
  type TrafficPolicy,
  type TrafficPolicySpec,
  type TrafficRequests,
  validateTrafficPolicy,
} from "../../api/traffic-policy.ts";
import type { ResourcePolicyRuleSpec } from "../../api/traffic-rules.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { AdmissionRule, LimiterSpec, LimitRule, RequestMatch, ResourceRule } from "../../policy/policy.ts";
import { createPolicyKind, perOf } from "./policy-kind.ts";

export const trafficPolicies = createPolicyKind({
  resource: TRAFFIC_POLICIES,
  validate: validateTrafficPolicy,
  rulesOf({ spec: { circuitBreaking, rateLimiting } }, headOf) {
    const ruleOf = (name: string, match: RequestMatch, limiter: LimiterSpec): LimitRule => {
      return { ...headOf(name), match, limiter, recovery: "" };
    };
    const { apiServer, webhook } = circuitBreaking ?? {};
    const admissions = (webhook?.admissionRules ?? []).map(admissionRuleOf);
    const limits: LimitRule[] = [];
    if (apiServer !== undefined) limits.push(ruleOf("circuitBreaking.apiServer", matchOf(apiServer), DENY));
    if (admissions.length > 0) limits.push(ruleOf("circuitBreaking.webhook", { ...NO_REQUESTS, admissions }, DENY));
    for (const [index, policy] of (rateLimiting?.ratePolicies ?? []).entries()) {
      for (const [field, limiter] of Object.entries(limitersOf(policy))) {
        limits.push(ruleOf(`rateLimiting.ratePolicies[${index}].${field}`, matchOf(policy.rules), limiter));
      }
    }
    return { limits };
  },
  isFor: ({ spec: { targetVirtualApps } }, { app, subset }) => {
    if (app === "") return "unsure";
    const target = targetVirtualApps.find(({ name }) => name === app);
    return target !== undefined && isForSubset(target, subset);
  },
  notes,
});

/** A section without rules beside another one that has some. */
function* notes({ spec: { circuitBreaking, rateLimiting } }: TrafficPolicy): Iterable<string> {
  if (circuitBreaking !== undefined && Object.keys(circuitBreaking).length === 0)
    yield "spec.circuitBreaking has no rules, so it refuses nothing";
  if (circuitBreaking?.webhook !== undefined && (circuitBreaking.webhook.admissionRules ?? []).length === 0)
    yield "spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing";
  if (rateLimiting !== undefined && (rateLimiting.ratePolicies ?? []).length === 0)
    yield "spec.rateLimiting has no ratePolicies, so it limits nothing";
}

type Target = TrafficPolicySpec["targetVirtualApps"][number];

function isForSubset({ specificSubsets = [] }: Target, subset: string | undefined): boolean | "unsure" {
  if (specificSubsets.length === 0 || specificSubsets[0] === "*") return true;
  if (subset === undefined) return "unsure";
  return specificSubsets.includes(subsetDisplayName(subset));
}

const DENY: LimiterSpec = { kind: "deny" };
const NO_REQUESTS: RequestMatch = { resources: [], urls: [], http: [] };
const ALL: readonly string[] = ["*"];

type Webhook = NonNullable<NonNullable<TrafficPolicySpec["circuitBreaking"]>["webhook"]>;

function admissionRuleOf(rule: NonNullable<Webhook["admissionRules"]>[number]): AdmissionRule {
  const { apiGroups = ALL, apiVersions = ALL, operations = ALL, resources = ALL, scope = "*" } = rule;
  return { apiGroups, apiVersions, operations, resources, scope };
}

/** The limiters, by the names of their fields. */
function limitersOf({ bucket, maxInFlight, exponentialBackoff }: RatePolicy): Readonly<Record<string, LimiterSpec>> {
  return {
    ...(bucket && { bucket: { kind: "bucket", perSecond: bucket.qps, burst: bucket.burst, ...perOf(bucket.per) } }),
    ...(maxInFlight !== undefined && { maxInFlight: { kind: "in-flight", max: maxInFlight } }),
    ...(exponentialBackoff && { exponentialBackoff: backoffOf(exponentialBackoff) }),
  };
}

function backoffOf(backoff: NonNullable<RatePolicy["exponentialBackoff"]>): LimiterSpec {
  const { baseDelayInMillisecond, maxDelayInMillisecond, continuouslyFailureTimes = 0 } = backoff;
  // The spec counts the failures before the one that causes a wait.
  const failures = continuouslyFailureTimes + 1;
  return { kind: "backoff", baseMs: baseDelayInMillisecond, maxMs: maxDelayInMillisecond, failures };
}

function matchOf({ resourceRules = [], nonResourceRules = [] }: TrafficRequests): RequestMatch {
  return {
    resources: resourceRules.map(resourceRuleOf),
    urls: nonResourceRules.flatMap(({ nonResourceURLs, verbs }) => {
      const methods = verbs.map((verb) => verb.toUpperCase());
      return nonResourceURLs.map((url) => ({ url, methods }));
    }),
    http: [],
  };
}

/** The form of API Priority and Fairness names the cluster scope. */
function resourceRuleOf(rule: ResourcePolicyRuleSpec): ResourceRule {
  const { namespaces = [], clusterScope = false } = rule;
  return { ...rule, namespaces, clusterScope };
}

// The kind TrafficPolicy: limits and denials for the requests of apps. Invariant: it has each field of
// OpenKruise's kind, with the same spelling.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { type Check, listMap, someField, someItem, withChecks } from "./extensions.ts";
import { int, MAX_INT32, nonEmptyList, textUpTo } from "./fields.ts";
import { defineKind, KRUISE_GROUP, objectMetaSchema } from "./kind.ts";
import { dnsSubdomainSchema } from "./names.ts";
import { POLICY_COLUMNS, policyStatusSchema } from "./policy-status.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { apiGroupSchema } from "./resource-match.ts";
import { type Finding, fieldAt, itemsOf, uniqueNames, withRules } from "./rule.ts";
import {
  boundedDividedBuckets,
  boundedResourceRules,
  MAX_RESOURCE_RULES,
  MAX_TRAFFIC_RULES,
  matchList,
  modeSchema,
  perSchema,
  resourcePolicyRuleSchema,
} from "./traffic-rules.ts";

const MAX_TARGETS = 64;
const MAX_DELAY_MS = 3_600_000;

const subsetSchema = textUpTo(63).regex(/^(\*|[a-z0-9]+(-{1,2}[a-z0-9]+)*)$/, {
  error: 'must be the name of a subset, "default", or "*" for all',
});

const targetSchema = z.strictObject({
  name: dnsSubdomainSchema.describe("Name of a VirtualApp of this namespace, or of a family of ShardingConfigs."),
  specificSubsets: optional(matchList(subsetSchema, 66, 0)).describe(
    'Names of subsets or shards whose pods the policy is for. "default" is the subset of the pods that match no other. An empty list, or "*" alone, means all subsets.',
  ),
});

const urlSchema = textUpTo(512).regex(/^(\*|\/([^*?#\s]*\/)?\*|\/[^*?#\s]*)$/, {
  error: 'must be a path such as "/healthz", a path whose last segment is "*" such as "/debug/*", or "*" for all',
});

const METHODS = ["get", "head", "post", "put", "patch", "delete", "options", "*"] as const;

const nonResourceRuleSchema = z.strictObject({
  nonResourceURLs: matchList(urlSchema, 64).describe(
    'Paths of requests that are not for objects. A path matches everything below it too, with or without a last segment "*". "*" matches all.',
  ),
  verbs: matchList(z.enum(METHODS), 7).describe('HTTP methods in lower case. "*" matches all.'),
});

const SOME_NAMESPACE: Check = {
  rule: "has(self.namespaces) && self.namespaces.size() > 0 || has(self.clusterScope) && self.clusterScope",
  message: "matches no requests: set namespaces, or clusterScope to true",
  holds: ({ namespaces, clusterScope }) => itemsOf(namespaces).length > 0 || clusterScope === true,
};

const requestsSchema = withChecks(
  z.strictObject({
    resourceRules: optional(z.array(withChecks(resourcePolicyRuleSchema, SOME_NAMESPACE)).max(MAX_RESOURCE_RULES)).describe(
      "Requests for objects: those that match one of the entries.",
    ),
    nonResourceRules: optional(z.array(nonResourceRuleSchema).max(MAX_RESOURCE_RULES)).describe(
      "Other requests to the API server: those that match one of the entries.",
    ),
  }),
  someItem("matches no requests: set resourceRules or nonResourceRules", "resourceRules", "nonResourceRules"),
);

const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT", "*"] as const;
const VERSION = /^(\*|[a-z0-9]+(-[a-z0-9]+)*)$/;
const RESOURCE = /^(\*|\*\/\*|[a-z0-9-]+(\/(\*|[a-z0-9-]+))?|\*\/[a-z0-9-]+)$/;
const versionSchema = textUpTo(63).regex(VERSION, { error: 'must be an API version such as "v1", or "*" for all' });
const admissionResourceSchema = textUpTo(127).regex(RESOURCE, {
  error: 'must be a plural resource name such as "pods", a subresource such as "pods/status", "pods/*", "*" or "*/*"',
});

const admissionRuleSchema = z
  .strictObject({
    apiGroups: optional(matchList(apiGroupSchema, 64)).describe('API groups. "" is the core group.'),
    apiVersions: optional(matchList(versionSchema, 64)).describe("API versions that the webhook asks for."),
    operations: optional(matchList(z.enum(OPERATIONS), 4)).describe("Operations."),
    resources: optional(matchList(admissionResourceSchema, 64)).describe(
      'Plural resource names, as in webhook configurations: "pods" does not include subresources, "pods/*" means pods and their subresources, "*/*" everything. The default is "*": all resources, without their subresources.',
    ),
    scope: optional(z.enum(["Cluster", "Namespaced", "*"])).describe('Scope of the objects. The default is "*".'),
  })
  .describe('An absent list matches all, like "*".');

const circuitBreakingSchema = z.strictObject({
  apiServer: optional(requestsSchema).describe("Requests to the API server that are refused."),
  webhook: optional(
    z.strictObject({
      admissionRules: optional(z.array(admissionRuleSchema).max(MAX_RESOURCE_RULES)).describe(
        "Reviews: those that match one of the entries.",
      ),
    }),
  ).describe(
    "Reviews for the operator's admission webhooks that are refused with the status 503, so that the failurePolicy of the webhook decides. For apps with a webhook server in their spec.",
  ),
});

const positive = int(1, MAX_INT32);
const delay = int(1, MAX_DELAY_MS);

const backoffSchema = withChecks(
  z.strictObject({
    baseDelayInMillisecond: delay.describe("The first wait in milliseconds. Each further failure doubles it."),
    maxDelayInMillisecond: delay.describe("The longest wait in milliseconds."),
    continuouslyFailureTimes: optional(int(0, 10_000)).describe(
      "Number of failures in a row that cause no wait. The default is 0: the first failure causes one.",
    ),
  }),
  {
    rule: "self.baseDelayInMillisecond <= self.maxDelayInMillisecond",
    message: "must not be less than baseDelayInMillisecond",
    fieldPath: ".maxDelayInMillisecond",
    holds: ({ baseDelayInMillisecond: base, maxDelayInMillisecond: most }) =>
      typeof base !== "number" || typeof most !== "number" || base <= most,
  },
);

const ratePolicySchema = withChecks(
  z.strictObject({
    rules: requestsSchema.describe("Requests that the policy limits."),
    bucket: optional(
      z.strictObject({
        qps: positive.describe("Number of tokens that the bucket gains each second."),
        burst: positive.describe("Number of tokens of a full bucket. Each request takes one."),
        per: perSchema,
      }),
    ).describe("A token bucket. A request without a token is refused."),
    maxInFlight: optional(positive).describe(
      "Number of requests that a pod may have at once. Watches and other long requests count until their answer begins.",
    ),
    exponentialBackoff: optional(backoffSchema).describe(
      "After failures, requests with the same verb for the same object are refused for a time. Failures are answers of 429 or above 499, and requests without an answer.",
    ),
  }),
  someField("limits nothing: set bucket, maxInFlight or exponentialBackoff", "bucket", "maxInFlight", "exponentialBackoff"),
);

const specSchema = withRules(
  withChecks(
    z.strictObject({
      targetVirtualApps: nonEmptyList(targetSchema, MAX_TARGETS)
        .meta(listMap("name"))
        .describe("Apps whose proxies enforce the rules, in the namespace of this object."),
      mode: modeSchema,
      circuitBreaking: optional(circuitBreakingSchema).describe("Requests that are refused."),
      rateLimiting: optional(
        z.strictObject({
          ratePolicies: optional(z.array(ratePolicySchema).max(MAX_TRAFFIC_RULES)).describe(
            "Limits. Every limit that matches a request applies.",
          ),
        }),
      ).describe("Requests that are limited."),
    }),
    {
      rule: [
        "has(self.circuitBreaking) && has(self.circuitBreaking.apiServer)",
        `has(self.circuitBreaking) && has(self.circuitBreaking.webhook) && ${hasItems("self.circuitBreaking.webhook.admissionRules")}`,
        `has(self.rateLimiting) && ${hasItems("self.rateLimiting.ratePolicies")}`,
      ].join(" || "),
      message: "has no rules: set circuitBreaking or rateLimiting, and rules in it",
      holds: (spec) => hasRules(spec),
    },
  ),
  specRules,
);

export const trafficPolicyKind = defineKind({
  group: KRUISE_GROUP,
  kind: "TrafficPolicy",
  plural: "trafficpolicies",
  shortName: "tp",
  description:
    "TrafficPolicy limits and refuses requests that operators send to the API server. The proxy of each pod counts by itself, unless bucket.per is Policy.",
  columns: POLICY_COLUMNS,
  metadata: objectMetaSchema,
  spec: specSchema.describe("The apps, and the rules for their requests."),
  status: policyStatusSchema,
});

export type TrafficPolicy = Immutable<z.output<typeof trafficPolicyKind.schema>>;
export type TrafficPolicySpec = Immutable<z.output<typeof specSchema>>;
export type TrafficRequests = Immutable<z.output<typeof requestsSchema>>;
export type RatePolicy = Immutable<z.output<typeof ratePolicySchema>>;

export function validateTrafficPolicy(object: unknown): ValidationResult<TrafficPolicy> {
  return validate(trafficPolicyKind.schema, object);
}

function hasRules(spec: unknown): boolean {
  if (fieldAt(spec, "circuitBreaking", "apiServer") !== undefined) return true;
  const lists = [
    ["circuitBreaking", "webhook", "admissionRules"],
    ["rateLimiting", "ratePolicies"],
  ];
  return lists.some((path) => itemsOf(fieldAt(spec, ...path)).length > 0);
}

/** In CEL. */
function hasItems(field: string): string {
  return `has(${field}) && ${field}.size() > 0`;
}

function* specRules(spec: unknown): Iterable<Finding> {
  const limited = itemsOf(fieldAt(spec, "rateLimiting", "ratePolicies")).map((policy) => fieldAt(policy, "rules"));
  const requests = [fieldAt(spec, "circuitBreaking", "apiServer"), ...limited];
  const resourceRules = requests.flatMap((each) => itemsOf(fieldAt(each, "resourceRules")));
  yield* boundedResourceRules(resourceRules, []);
  const buckets = itemsOf(fieldAt(spec, "rateLimiting", "ratePolicies")).map((policy) => fieldAt(policy, "bucket"));
  yield* boundedDividedBuckets(buckets, ["rateLimiting", "ratePolicies"]);
  yield* uniqueNames(spec, ["targetVirtualApps"]);
}

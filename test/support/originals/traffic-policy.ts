// The fields of OpenKruise's TrafficPolicy (apis/ctrlmesh/v1alpha1 of openkruise/controllermesh), whose rules have the types
// of flowcontrol.apiserver.k8s.io and admissionregistration.k8s.io.
import { PODS_RULE, sampleTrafficPolicy } from "../traffic-objects.ts";
import { ABSENT_LIST, ALONE, EMPTY_LIST, type FieldCase, LIST_CASES, type OriginalType, PROXY_VERB, RESOURCE } from "./field.ts";

const POLICY = "spec.rateLimiting.ratePolicies[]";
const API_SERVER = "spec.circuitBreaking.apiServer";
const ADMISSION = "spec.circuitBreaking.webhook.admissionRules[]";
const BACKOFF = `${POLICY}.exponentialBackoff`;

const URLS = { nonResourceURLs: ["/healthz"], verbs: ["get"] };
const REQUESTS = { resourceRules: [PODS_RULE], nonResourceRules: [URLS] };
const sample = () =>
  sampleTrafficPolicy({
    circuitBreaking: {
      apiServer: REQUESTS,
      webhook: { admissionRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }] },
    },
    rateLimiting: {
      ratePolicies: [
        {
          rules: REQUESTS,
          bucket: { qps: 2, burst: 5 },
          maxInFlight: 3,
          exponentialBackoff: { baseDelayInMillisecond: 10, maxDelayInMillisecond: 40, continuouslyFailureTimes: 2 },
        },
      ],
    },
  });

const NO_REQUESTS = "matches no requests: set resourceRules or nonResourceRules";
const NO_RULES = "has no rules: set circuitBreaking or rateLimiting, and rules in it";
const URL = 'must be a path such as "/healthz", a path whose last segment is "*" such as "/debug/*", or "*" for all';
const NO_SCOPE = "matches no requests: set namespaces, or clusterScope to true";
const AT_LEAST_1: FieldCase = { value: 0, refused: "must be at least 1" };
const ONLY_WEBHOOK = { "spec.rateLimiting": undefined, [API_SERVER]: undefined };

/** The fields of requests at this path. */
const requestFields = (path: string): OriginalType["fields"] => ({
  [path]: [{ value: {}, refused: NO_REQUESTS }],
  [`${path}.resourceRules`]: [
    { value: [], unlike: [PODS_RULE] },
    { value: Array.from({ length: 17 }, () => PODS_RULE), refused: "must have at most 16 items" },
  ],
  [`${path}.resourceRules[].apiGroups`]: [{ value: ["apps"], unlike: [""] }, { refused: ABSENT_LIST }, ...LIST_CASES],
  [`${path}.resourceRules[].resources`]: [
    { value: ["pods/status"], unlike: ["pods"] },
    { value: ["Pod"], refused: RESOURCE },
    ...LIST_CASES,
  ],
  [`${path}.resourceRules[].verbs`]: [
    { value: ["create", "patch", "deletecollection"], unlike: ["create"] },
    { value: ["proxy"], refused: PROXY_VERB },
    { value: [], refused: EMPTY_LIST },
    { value: ["*", "get"], refused: ALONE },
  ],
  [`${path}.resourceRules[].clusterScope`]: [{ value: true, unlike: false }, { unlike: true }],
  [`${path}.resourceRules[].namespaces`]: [
    { value: ["shop"], unlike: ["*"] },
    { value: [], given: { [`${path}.resourceRules[].clusterScope`]: true }, unlike: ["*"] },
    { given: { [`${path}.resourceRules[].clusterScope`]: true }, unlike: ["*"] },
    { refused: NO_SCOPE },
    { value: [], refused: NO_SCOPE },
    { value: ["*", "a"], refused: ALONE },
  ],
  [`${path}.nonResourceRules`]: [{ value: [], unlike: [URLS] }],
  [`${path}.nonResourceRules[].nonResourceURLs`]: [
    { value: ["/metrics", "/debug/*"], unlike: ["/metrics"] },
    { value: ["*"], unlike: ["/metrics"] },
    { value: ["/hea*"], refused: URL },
    { value: ["healthz"], refused: URL },
    { value: [], refused: EMPTY_LIST },
  ],
  [`${path}.nonResourceRules[].verbs`]: [
    { value: ["get", "post"], unlike: ["get"] },
    { value: ["*"], unlike: ["get"] },
    {
      value: ["GET"],
      refused: 'must be one of "get", "head", "post", "put", "patch", "delete", "options", "*"; did you mean "get"?',
    },
    { value: [], refused: EMPTY_LIST },
  ],
});

export const TRAFFIC_POLICY: OriginalType = {
  kind: "TrafficPolicy",
  sample,
  fields: {
    "spec.targetVirtualApps": [
      { value: [], refused: "must not be empty" },
      { value: [{ name: "shop" }, { name: "shop" }], refused: "is already the name of spec.targetVirtualApps[0]" },
    ],
    "spec.targetVirtualApps[].name": [{ value: "shop", unlike: "cart" }],
    "spec.targetVirtualApps[].specificSubsets": [
      { value: ["canary"], unlike: ["*"] },
      { value: [], unlike: ["canary"] },
      { value: ["*"], unlike: ["canary"] },
      { unlike: ["canary"] },
    ],
    "spec.circuitBreaking": [
      { unlike: { apiServer: REQUESTS } },
      { value: {}, note: "spec.circuitBreaking has no rules, so it refuses nothing" },
      { value: {}, given: { "spec.rateLimiting": undefined }, refused: NO_RULES },
    ],
    ...requestFields(API_SERVER),
    "spec.circuitBreaking.webhook": [
      { value: {}, note: "spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing" },
      { value: {}, given: ONLY_WEBHOOK, refused: NO_RULES },
    ],
    "spec.circuitBreaking.webhook.admissionRules": [
      { value: [{}], unlike: [{ operations: ["DELETE"] }] },
      { value: [], given: ONLY_WEBHOOK, refused: NO_RULES },
    ],
    [`${ADMISSION}.apiGroups`]: [{ value: ["apps"], unlike: [""] }, { unlike: [""] }, ...LIST_CASES],
    [`${ADMISSION}.apiVersions`]: [{ value: ["v1", "v1beta1"], unlike: ["v1"] }, { unlike: ["v1"] }, ...LIST_CASES],
    [`${ADMISSION}.operations`]: [
      { value: ["UPDATE", "DELETE", "CONNECT"], unlike: ["CREATE"] },
      { unlike: ["CREATE"] },
      {
        value: ["create"],
        refused: 'must be one of "CREATE", "UPDATE", "DELETE", "CONNECT", "*"; did you mean "CREATE"?',
      },
      { value: [], refused: EMPTY_LIST },
    ],
    [`${ADMISSION}.resources`]: [{ value: ["pods/*", "*/scale"], unlike: ["*/*"] }, { unlike: ["*/*"] }, ...LIST_CASES],
    [`${ADMISSION}.scope`]: [
      { value: "Cluster", unlike: "Namespaced" },
      { value: "*", unlike: "Cluster" },
      { unlike: "Cluster" },
    ],
    "spec.rateLimiting": [
      { unlike: { ratePolicies: [{ rules: REQUESTS, maxInFlight: 1 }] } },
      { value: {}, note: "spec.rateLimiting has no ratePolicies, so it limits nothing" },
      { value: {}, given: { "spec.circuitBreaking": undefined }, refused: NO_RULES },
    ],
    "spec.rateLimiting.ratePolicies": [
      { value: [], note: "spec.rateLimiting has no ratePolicies, so it limits nothing" },
      { value: [], given: { "spec.circuitBreaking": undefined }, refused: NO_RULES },
      {
        value: Array.from({ length: 65 }, () => ({ rules: REQUESTS, maxInFlight: 1 })),
        refused: "must have at most 64 items",
      },
      { value: [{ rules: REQUESTS }], refused: "limits nothing: set bucket, maxInFlight or exponentialBackoff" },
    ],
    ...requestFields(`${POLICY}.rules`),
    [`${POLICY}.bucket`]: [{ unlike: { qps: 1, burst: 1 } }],
    [`${POLICY}.bucket.qps`]: [{ value: 100, unlike: 1 }, AT_LEAST_1],
    [`${POLICY}.bucket.burst`]: [{ value: 100, unlike: 1 }, AT_LEAST_1],
    [`${POLICY}.maxInFlight`]: [{ value: 100, unlike: 1 }, { unlike: 1 }, AT_LEAST_1],
    [BACKOFF]: [{ unlike: { baseDelayInMillisecond: 1, maxDelayInMillisecond: 1 } }],
    [`${BACKOFF}.baseDelayInMillisecond`]: [
      { value: 20, unlike: 10 },
      { value: 50, refused: "must not be less than baseDelayInMillisecond" },
      AT_LEAST_1,
    ],
    [`${BACKOFF}.maxDelayInMillisecond`]: [
      { value: 3_600_000, unlike: 40 },
      { value: 3_600_001, refused: "must be at most 3600000" },
    ],
    [`${BACKOFF}.continuouslyFailureTimes`]: [
      { value: 5, unlike: 0 },
      { unlike: 2 },
      { value: -1, refused: "must be at least 0" },
    ],
  },
  status: [],
  older: {},
};

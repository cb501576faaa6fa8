// The fields of KusionStack's CircuitBreaker (pkg/apis/ctrlmesh/v1alpha1 of KusionStack/controller-mesh).
import { PODS_RULE, sampleCircuitBreaker } from "../traffic-objects.ts";
import {
  ABSENT_LIST,
  ALONE,
  DURATION,
  EMPTY_LIST,
  EMPTY_SELECTOR,
  HOST,
  LIST_CASES,
  ONE_LINE,
  ONE_OF_METHODS,
  type OriginalType,
  PROXY_VERB,
  RE2,
  RESOURCE,
} from "./field.ts";

const RULE = "spec.rateLimitings[]";
const INTERCEPT = "spec.trafficInterceptRules[]";
const MANUAL = { type: "Manual" };
const LIMITER = { [`${RULE}.triggerPolicy`]: "LimiterOnly" };

const sample = () =>
  sampleCircuitBreaker(
    { restRules: [{ url: "http://example.com/v1", method: "GET" }] },
    {
      trafficInterceptRules: [
        { name: "inside", interceptType: "Blacklist", contentType: "Normal", contents: ["example.com"], methods: ["CONNECT"] },
      ],
    },
  );
const rulesOf = (list: string) => (sample().spec as Readonly<Record<string, object[]>>)[list] ?? [];
const twice = (list: string) => [...rulesOf(list), ...rulesOf(list)];
const many = (length: number) => Array.from({ length }, (_, index) => ({ ...PODS_RULE, namespaces: [`n${index}`] }));

export const CIRCUIT_BREAKER: OriginalType = {
  kind: "CircuitBreaker",
  sample,
  fields: {
    "spec.selector": [{ refused: "required" }, { value: {}, refused: EMPTY_SELECTOR }],
    "spec.selector.matchLabels": [{ value: { app: "shop" }, unlike: { app: "cart" } }],
    "spec.selector.matchExpressions": [
      { value: [{ key: "app", operator: "NotIn", values: ["shop"] }] },
      { value: [{ key: "app", operator: "Exists" }], unlike: [{ key: "app", operator: "DoesNotExist" }] },
    ],
    "spec.rateLimitings": [
      { given: { "spec.trafficInterceptRules": [] }, refused: "has no rules: set rateLimitings or trafficInterceptRules" },
      { value: twice("rateLimitings"), refused: "is already the name of spec.rateLimitings[0]" },
      { value: [], unlike: rulesOf("rateLimitings") },
    ],
    [`${RULE}.name`]: [
      { value: "delete pods: at most 5", unlike: "x" },
      { value: "删除", unlike: "x" },
      { value: "two\nlines", refused: ONE_LINE },
      { value: "", refused: ONE_LINE },
    ],
    [`${RULE}.resourceRules`]: [
      { value: [], unlike: [PODS_RULE] },
      { value: many(17), refused: "must have at most 16 items" },
      { value: [], given: { [`${RULE}.restRules`]: [] }, refused: "matches no requests: set resourceRules or restRules" },
    ],
    [`${RULE}.resourceRules[].apiGroups`]: [
      { value: ["apps", "batch"], unlike: [""] },
      { value: ["*"], unlike: [""] },
      ...LIST_CASES,
    ],
    [`${RULE}.resourceRules[].resources`]: [
      { value: ["pods", "*/scale"], unlike: ["pods"] },
      { value: ["*"], unlike: ["pods"] },
      { value: ["Pod"], refused: RESOURCE },
      ...LIST_CASES,
    ],
    [`${RULE}.resourceRules[].verbs`]: [
      { value: ["get", "list", "watch", "create", "update", "delete"], unlike: ["get"] },
      { value: ["*"], unlike: ["get"] },
      { value: ["proxy"], refused: PROXY_VERB },
      { value: [], refused: EMPTY_LIST },
      { value: ["*", "get"], refused: ALONE },
    ],
    [`${RULE}.resourceRules[].namespaces`]: [{ value: ["shop"], unlike: ["*"] }, { refused: ABSENT_LIST }, ...LIST_CASES],
    [`${RULE}.restRules`]: [{ value: [], unlike: [{ url: "http://example.com", method: "*" }] }],
    [`${RULE}.restRules[].url`]: [
      { value: "http://example.com:8443/v1/*", unlike: "http://example.com" },
      {
        value: "example.com/v1",
        refused: 'must be a URL such as "https://example.com/v1", "https://example.com/*" for everything below, or "https://*"',
      },
      { value: "https://example.com/v*", refused: 'matches nothing: "*" must be the whole last segment of the path' },
    ],
    [`${RULE}.restRules[].method`]: [
      { value: "DELETE", unlike: "GET" },
      { value: "*", unlike: "GET" },
      { value: "post", refused: ONE_OF_METHODS },
    ],
    [`${RULE}.bucket`]: [
      { given: LIMITER, refused: "required with triggerPolicy LimiterOnly, unless maxDeleted is set" },
      { refused: "Normal needs something that opens the breaker: set bucket, maxDeleted or trigger" },
      { given: { [`${RULE}.triggerPolicy`]: "ForceOpened" }, value: { burst: 1, interval: "1s", limit: 1 } },
    ],
    [`${RULE}.bucket.burst`]: [
      { value: 500, unlike: 5 },
      { value: 0, refused: "must be at least 1; to refuse every request, set triggerPolicy to ForceOpened and no bucket" },
      { value: 4_294_967_295, refused: "must be at most 2147483647" },
    ],
    [`${RULE}.bucket.interval`]: [
      { value: "48h", unlike: "24h" },
      { value: "1m30s", unlike: "1m" },
      { value: "10", refused: DURATION },
      { value: "8761h", refused: "must be from 1ms to 8760h" },
    ],
    [`${RULE}.bucket.limit`]: [
      { value: 20, unlike: 1 },
      { value: 0, refused: "must be at least 1; for a bucket that hardly fills again, set a long interval" },
      { value: 4_294_967_295, refused: "must be at most 2147483647" },
    ],
    [`${RULE}.triggerPolicy`]: [
      { value: "Normal", unlike: "LimiterOnly" },
      { value: "LimiterOnly", unlike: "Normal" },
      { value: "ForceOpened", unlike: "Normal" },
      { value: "ForceClosed", unlike: "Normal" },
      { refused: 'required: must be one of "Normal", "LimiterOnly", "ForceOpened", "ForceClosed"' },
    ],
    [`${RULE}.recoverPolicy`]: [
      { given: LIMITER },
      { refused: "required with triggerPolicy Normal: it says how an open breaker closes" },
      { value: "Manual", refused: "must be an object; did you mean {type: Manual}?" },
      {
        value: "SleepingWindow",
        refused: "must be an object; did you mean {type: SleepingWindow, sleepingWindowSize: 10m}?",
      },
    ],
    [`${RULE}.recoverPolicy.type`]: [
      { value: "SleepingWindow", unlike: "Manual" },
      {
        value: "Manual",
        unlike: "SleepingWindow",
        note: "spec.rateLimitings[0].recoverPolicy.sleepingWindowSize has no effect with the type Manual",
      },
    ],
    [`${RULE}.recoverPolicy.sleepingWindowSize`]: [
      { value: "30m", unlike: "10m" },
      { given: { [`${RULE}.recoverPolicy`]: MANUAL } },
      { refused: "SleepingWindow needs sleepingWindowSize" },
      { value: "169h", refused: "must be from 1s to 168h" },
    ],
    [`${RULE}.properties`]: [
      { value: { owner: "me" }, note: "spec.rateLimitings[0].properties has no effect" },
      {
        value: { sleepingWindowSize: "10m" },
        refused: 'has no effect; did you mean "recoverPolicy.sleepingWindowSize"?',
      },
    ],
    "spec.trafficInterceptRules": [
      { value: [], unlike: rulesOf("trafficInterceptRules") },
      { value: twice("trafficInterceptRules"), refused: "is already the name of spec.trafficInterceptRules[0]" },
    ],
    [`${INTERCEPT}.name`]: [
      { value: "only inside", unlike: "x" },
      { value: " x", refused: ONE_LINE },
    ],
    [`${INTERCEPT}.interceptType`]: [
      { value: "Whitelist", unlike: "Blacklist" },
      { value: "Blacklist", unlike: "Whitelist" },
      { value: "White", refused: 'must be one of "Whitelist", "Blacklist"; did you mean "Whitelist"?' },
      { value: "Black", refused: 'must be one of "Whitelist", "Blacklist"; did you mean "Blacklist"?' },
    ],
    [`${INTERCEPT}.contentType`]: [
      { value: "Regexp", unlike: "Normal" },
      { refused: 'required: must be one of "Normal", "Regexp"' },
    ],
    [`${INTERCEPT}.contents`]: [
      { value: ["a.example", "10.0.0.1:8080"], unlike: ["a.example"] },
      { value: [".*(127.0.0.1).*"], given: { [`${INTERCEPT}.contentType`]: "Regexp" }, unlike: ["a"] },
      { value: ["https://a.example/v1"], refused: HOST },
      { value: ["*.a.example"], refused: `${HOST}; a pattern needs contentType "Regexp"` },
      { value: ["a(?=b)"], given: { [`${INTERCEPT}.contentType`]: "Regexp" }, refused: RE2 },
      { value: [], refused: "must not be empty" },
    ],
    [`${INTERCEPT}.methods`]: [
      { value: ["POST", "GET", "PUT", "CONNECT"], unlike: ["CONNECT"] },
      { value: ["*"], unlike: ["CONNECT"] },
      { value: ["post"], refused: ONE_OF_METHODS },
      { value: [], refused: EMPTY_LIST },
    ],
  },
  status: [
    "observedGeneration",
    "lastUpdatedTime",
    "currentSpecHash",
    "targetStatus[].podName",
    "targetStatus[].podIP",
    "targetStatus[].configHash",
    "targetStatus[].message",
    "targetStatus[].limitingSnapshots[].name",
    "targetStatus[].limitingSnapshots[].state",
    "targetStatus[].limitingSnapshots[].lastTransitionTime",
  ],
  older: {
    "spec.selector.labelSelector": { matchLabels: { app: "shop" } },
    "spec.selector.targets": ["shop-0"],
    [`${RULE}.validatePolicy`]: "AfterHttpSuccess",
  },
};

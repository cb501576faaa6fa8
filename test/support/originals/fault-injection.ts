// The fields of KusionStack's FaultInjection (pkg/apis/ctrlmesh/v1alpha1 of KusionStack/controller-mesh).
import { PODS_RULE, sampleFaultInjection } from "../traffic-objects.ts";
import {
  ALONE,
  DURATION,
  EMPTY_LIST,
  EMPTY_SELECTOR,
  type FieldCase,
  HOST,
  LIST_CASES,
  ONE_LINE,
  ONE_OF_METHODS,
  type OriginalType,
  PROXY_VERB,
  RE2,
  RESOURCE,
} from "./field.ts";

const FAULT = "spec.httpFault[]";
const HTTP = `${FAULT}.match.httpMatch[]`;
const OTHER_HTTP = [{ method: "GET" }];

const sample = () =>
  sampleFaultInjection({
    abort: { httpStatus: 503, percent: "10" },
    match: {
      resources: [PODS_RULE],
      httpMatch: [
        {
          host: { exact: "example.com" },
          path: { exact: "/v1" },
          method: "GET",
          headers: [{ name: "x-tenant", value: "a" }],
        },
      ],
    },
    effectiveTime: { startTime: "22:00:00", endTime: "23:00:00", daysOfWeek: [1], daysOfMonth: [1], months: [1] },
  });

const STATUS = "must be from 400 to 599; 0 and 200 mean no abort";
const TIME = 'must be a time of the day such as "22:30:00"';
const PERCENT: readonly FieldCase[] = [
  { value: "100", unlike: "50" },
  { value: "12.5", unlike: "12" },
  { value: ".5", unlike: "5" },
  { value: "101", refused: 'must be a number from "0" to "100" such as "12.5", without a sign' },
  { value: "-1", refused: 'must be a number from "0" to "100" such as "12.5", without a sign' },
  { value: 10, refused: 'must be a string from "0" to "100", in quotes' },
];
const either = (unlike: string): readonly FieldCase[] => [
  { value: { regex: "^/v[0-9]" }, unlike: { exact: unlike } },
  { value: { exact: unlike, regex: "a" }, refused: "set either exact or regex" },
  { value: {}, refused: "set either exact or regex" },
  { value: { regex: "a(?=b)" }, refused: RE2 },
];

export const FAULT_INJECTION: OriginalType = {
  kind: "FaultInjection",
  sample,
  fields: {
    "spec.selector": [{ refused: "required" }, { value: {}, refused: EMPTY_SELECTOR }],
    "spec.selector.matchLabels": [{ value: { app: "shop" }, unlike: { app: "cart" } }],
    "spec.selector.matchExpressions": [
      { value: [{ key: "app", operator: "In", values: ["shop"] }], unlike: [{ key: "app", operator: "DoesNotExist" }] },
    ],
    "spec.disabled": [
      { value: true, unlike: false, note: "spec.disabled is true" },
      { value: false, unlike: true },
    ],
    "spec.httpFault": [{ refused: "required" }, { value: [], refused: "must not be empty" }],
    [`${FAULT}.name`]: [{ value: "slow night", unlike: "x" }, {}, { value: "two\nlines", refused: ONE_LINE }],
    [`${FAULT}.delay`]: [
      { unlike: { fixedDelay: "1s", percent: "1" } },
      { given: { [`${FAULT}.abort`]: undefined }, refused: "does nothing: set delay or abort" },
    ],
    [`${FAULT}.delay.fixedDelay`]: [
      { value: "300ms", unlike: "1s" },
      { value: "30s", unlike: "1s" },
      { value: "31s", refused: "must be from 1ms to 30s" },
      { value: "0s", refused: "must be from 1ms to 30s" },
      { value: "5", refused: DURATION },
      { refused: "required" },
    ],
    [`${FAULT}.delay.percent`]: [
      ...PERCENT,
      { unlike: "1", note: 'spec.httpFault[0].delay never happens: set percent, such as "100"' },
    ],
    [`${FAULT}.abort`]: [{ unlike: { httpStatus: 500, percent: "1" } }],
    [`${FAULT}.abort.httpStatus`]: [
      ...[400, 401, 403, 404, 405, 406, 409, 415, 422, 429, 503, 504].map((value) => ({ value, unlike: 500 })),
      { unlike: 500, note: "spec.httpFault[0].abort never happens: httpStatus 0 means no abort" },
      { value: 200, unlike: 500, note: "spec.httpFault[0].abort never happens: httpStatus 200 means no abort" },
      { value: 302, refused: STATUS },
    ],
    [`${FAULT}.abort.percent`]: [
      ...PERCENT,
      { unlike: "1", note: 'spec.httpFault[0].abort never happens: set percent, such as "100"' },
    ],
    [`${FAULT}.match`]: [{ unlike: { resources: [PODS_RULE] } }, { value: [], refused: "must be an object, not a list" }],
    [`${FAULT}.match.resources`]: [
      { value: [{}], unlike: [PODS_RULE] },
      { value: Array.from({ length: 17 }, () => PODS_RULE), refused: "must have at most 16 items" },
    ],
    [`${FAULT}.match.resources[].apiGroups`]: [{ value: ["apps"], unlike: [""] }, { unlike: [""] }, ...LIST_CASES],
    [`${FAULT}.match.resources[].resources`]: [
      { value: ["pods/status"], unlike: ["pods"] },
      { unlike: ["pods"] },
      { value: ["Pod"], refused: RESOURCE },
      ...LIST_CASES,
    ],
    [`${FAULT}.match.resources[].verbs`]: [
      { value: ["get", "create"], unlike: ["get"] },
      { unlike: ["get"] },
      { value: ["proxy"], refused: PROXY_VERB },
      { value: [], refused: EMPTY_LIST },
      { value: ["*", "get"], refused: ALONE },
    ],
    [`${FAULT}.match.resources[].namespaces`]: [{ value: ["shop"], unlike: ["*"] }, { unlike: ["shop"] }, ...LIST_CASES],
    [`${FAULT}.match.httpMatch`]: [{ value: [{}], unlike: OTHER_HTTP }, { unlike: OTHER_HTTP }],
    [`${HTTP}.host`]: [{ unlike: { exact: "a.example" } }, ...either("a.example")],
    [`${HTTP}.host.exact`]: [
      { value: "a.example", unlike: "b.example" },
      { value: "a.example:8443", unlike: "a.example" },
      { value: "https://a.example", refused: HOST },
    ],
    [`${HTTP}.host.regex`]: [{ value: "^a", given: { [`${HTTP}.host`]: {} }, unlike: "^b" }],
    [`${HTTP}.path`]: [{ unlike: { exact: "/v1" } }, ...either("/v1")],
    [`${HTTP}.path.exact`]: [
      { value: "/v2", unlike: "/v1" },
      { value: "v1?a=b", refused: 'must be a path without a query, such as "/v1/items"' },
    ],
    [`${HTTP}.path.regex`]: [{ value: "^/a", given: { [`${HTTP}.path`]: {} }, unlike: "^/b" }],
    [`${HTTP}.method`]: [
      { value: "POST", unlike: "GET" },
      { value: "*", unlike: "GET" },
      { unlike: "GET" },
      { value: "post", refused: ONE_OF_METHODS },
      { value: ["POST"], refused: 'must be one of "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "*"' },
    ],
    [`${HTTP}.headers`]: [{ unlike: [{ name: "a", value: "b" }] }],
    [`${HTTP}.headers[].name`]: [
      { value: "X-Tenant", unlike: "x-other" },
      { value: "x tenant", refused: "must be the name of a header" },
    ],
    [`${HTTP}.headers[].value`]: [{ value: "b", unlike: "a" }, { unlike: "a" }],
    [`${FAULT}.effectiveTime`]: [{ unlike: { months: [1] } }],
    [`${FAULT}.effectiveTime.startTime`]: [
      { value: "09:30:00", unlike: "22:00:00" },
      { value: "9:30:00", unlike: "22:00:00" },
      { value: "09:30", refused: TIME },
      { refused: "set both startTime and endTime, or neither" },
    ],
    [`${FAULT}.effectiveTime.endTime`]: [
      { value: "06:00:00", unlike: "23:00:00" },
      { value: "24:00:00", refused: TIME },
    ],
    [`${FAULT}.effectiveTime.daysOfWeek`]: [
      { value: [0, 6], unlike: [1] },
      { value: [7], refused: "must be at most 6" },
    ],
    [`${FAULT}.effectiveTime.daysOfMonth`]: [
      { value: [31], unlike: [1] },
      { value: [0], refused: "must be at least 1" },
    ],
    [`${FAULT}.effectiveTime.months`]: [
      { value: [12], unlike: [1] },
      { value: [13], refused: "must be at most 12" },
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
  ],
  older: {
    [`${FAULT}.match.relatedResources`]: [PODS_RULE],
    [`${FAULT}.match.restRules`]: [{ url: ["https://example.com"], method: ["POST"] }],
    [`${HTTP}.url`]: ["https://example.com"],
  },
};

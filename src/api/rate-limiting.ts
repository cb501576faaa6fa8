// One rule of a CircuitBreaker: a limit or a breaker for some requests. Invariant: it has each field of
// KusionStack's kind, with the same spelling; a field in an older form is refused, with a message that shows
// the new form.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { RECOVER_ANNOTATION } from "../base/recover-annotation.ts";
import { durationSchema } from "./duration.ts";
import { someField, someItem, withChecks } from "./extensions.ts";
import { int, MAX_INT32, textUpTo } from "./fields.ts";
import { type Finding, fieldAt, noDuplicates, withRules } from "./rule.ts";
import { anyMethodSchema, urlSchema } from "./server-match.ts";
import { MAX_RESOURCE_RULES, perSchema, resourceRuleSchema, ruleNameSchema } from "./traffic-rules.ts";

const REFUSE_ALL = "to refuse every request, set triggerPolicy to ForceOpened and no bucket";

const bucketSchema = z.strictObject({
  burst: int(1, MAX_INT32, REFUSE_ALL).describe("Number of tokens of a full bucket. Each request takes one."),
  interval: durationSchema("1ms", "8760h").describe('Time in which the bucket gains `limit` tokens, for example "10s".'),
  limit: int(1, MAX_INT32, "for a bucket that hardly fills again, set a long interval").describe(
    "Number of tokens that the bucket gains in each interval.",
  ),
  per: perSchema,
});

const maxDeletedSchema = z.strictObject({
  percent: int(1, 100).describe(
    "Percentage of the objects of a resource that may be deleted in each interval. The objects are those that the pod may see.",
  ),
  atLeast: int(1, MAX_INT32).describe(
    "Number of objects that may be deleted in each interval in any case, for example if there are few.",
  ),
  interval: durationSchema("1s", "8760h").describe('Time in which a delete wears off, for example "10m".'),
});

const recoverPolicySchema = withChecks(
  z.strictObject(
    {
      type: z
        .enum(["Manual", "SleepingWindow"])
        .describe(
          `SleepingWindow: after sleepingWindowSize a few requests at a time test the server, and decide whether the breaker closes. Manual: the breaker stays open until the annotation ${RECOVER_ANNOTATION} of this object has a new text.`,
        ),
      sleepingWindowSize: optional(durationSchema("1s", "168h")).describe(
        'Time for which an open breaker refuses all requests, for example "10m". Required with SleepingWindow.',
      ),
    },
    { error: ({ input }) => (typeof input === "string" ? oldRecoverPolicy(input) : undefined) },
  ),
  {
    rule: 'self.type != "SleepingWindow" || has(self.sleepingWindowSize)',
    message: "SleepingWindow needs sleepingWindowSize",
    holds: ({ type, sleepingWindowSize }) => type !== "SleepingWindow" || sleepingWindowSize !== undefined,
  },
);

const triggerSchema = withChecks(
  z.strictObject({
    consecutiveErrors: optional(int(1, 10_000)).describe("The breaker opens after this number of failures in a row."),
    errorPercent: optional(int(1, 100)).describe(
      "The breaker opens when this percentage of the requests of the window has failed.",
    ),
    minimumRequests: optional(int(1, MAX_INT32)).describe(
      "With fewer requests in the window, errorPercent opens nothing. The default is 20.",
    ),
    window: optional(durationSchema("1s", "1h")).describe("Time that errorPercent looks back. The default is 10s."),
    slowerThan: optional(durationSchema("1ms", "1h")).describe(
      "An answer that takes longer counts as a failure, and so does a request that its client gives up after this time.",
    ),
  }),
  someField("opens nothing: set consecutiveErrors or errorPercent", "consecutiveErrors", "errorPercent"),
);

const restRuleSchema = z.strictObject({
  url: urlSchema.describe(
    'URL of the requests. A URL without a query matches requests with and without a query; a URL with a query matches only that query. A last path segment "*" matches the path before it and everything below. Escaped letters, doubled slashes and a final slash do not matter. HTTPS clients open a tunnel, which counts as "https://host:port/" because its content is encrypted.',
  ),
  method: anyMethodSchema.describe('HTTP method of the requests, or "*" for all. A tunnel has the method CONNECT.'),
});

export const rateLimitingSchema = withRules(
  withChecks(
    z.strictObject({
      name: ruleNameSchema.describe("Name of the rule, in status, answers and metrics."),
      resourceRules: optional(z.array(resourceRuleSchema).max(MAX_RESOURCE_RULES)).describe(
        "Requests to the API server that the rule is about: those that match one of the entries.",
      ),
      restRules: optional(withRules(z.array(restRuleSchema).max(32), noDuplicates)).describe(
        "Requests to other servers than the API server that the rule is about: those that match one of the entries. They share the bucket and the breaker with those of resourceRules.",
      ),
      bucket: optional(bucketSchema).describe(
        "A token bucket. Required with LimiterOnly, and with Normal, unless maxDeleted or trigger is set.",
      ),
      maxDeleted: optional(maxDeletedSchema).describe(
        "A limit of the deletes in percent of the objects of each resource, instead of a bucket. A deletecollection costs what it would delete. Requests that delete nothing pass.",
      ),
      triggerPolicy: z
        .enum(["Normal", "LimiterOnly", "ForceOpened", "ForceClosed"])
        .describe(
          "Normal: the breaker opens when the bucket has no token, or when the trigger says so. An open breaker refuses all requests that match. LimiterOnly: requests without a token are refused, and the breaker never opens. ForceOpened: all requests that match are refused. ForceClosed: an exception: less specific rules of CircuitBreakers do not apply to requests that match. The rule that names more of group, resource, verb and namespace (or a longer URL) without a wildcard is more specific.",
        ),
      trigger: optional(triggerSchema).describe(
        "Opens the breaker when requests fail: with an answer of 429 or above 499, without an answer, or with a slow one. Only with Normal.",
      ),
      recoverPolicy: optional(recoverPolicySchema).describe(
        "How an open breaker closes. Required with Normal; without effect otherwise.",
      ),
      properties: z
        .record(z.string(), textUpTo(256))
        .meta({ maxProperties: 16 })
        .optional()
        .describe("This field has no effect. KusionStack's Controller Mesh does not use it either."),
    }),
    someItem("matches no requests: set resourceRules or restRules", "resourceRules", "restRules"),
    {
      rule: 'self.triggerPolicy != "Normal" || has(self.recoverPolicy)',
      message: "required with triggerPolicy Normal: it says how an open breaker closes",
      fieldPath: ".recoverPolicy",
      holds: ({ triggerPolicy, recoverPolicy }) => triggerPolicy !== "Normal" || recoverPolicy !== undefined,
    },
    {
      rule: 'self.triggerPolicy != "Normal" || has(self.bucket) || has(self.maxDeleted) || has(self.trigger)',
      message: "Normal needs something that opens the breaker: set bucket, maxDeleted or trigger",
      fieldPath: ".triggerPolicy",
      holds: ({ triggerPolicy, ...opens }) =>
        triggerPolicy !== "Normal" || [opens.bucket, opens.maxDeleted, opens.trigger].some((each) => each !== undefined),
    },
    {
      rule: 'self.triggerPolicy != "LimiterOnly" || has(self.bucket) || has(self.maxDeleted)',
      message: "required with triggerPolicy LimiterOnly, unless maxDeleted is set",
      fieldPath: ".bucket",
      holds: ({ triggerPolicy, bucket, maxDeleted }) =>
        triggerPolicy !== "LimiterOnly" || bucket !== undefined || maxDeleted !== undefined,
    },
    {
      rule: "!has(self.maxDeleted) || !has(self.bucket)",
      message: "set either bucket or maxDeleted",
      fieldPath: ".maxDeleted",
      holds: ({ bucket, maxDeleted }) => bucket === undefined || maxDeleted === undefined,
    },
    {
      rule: "!has(self.maxDeleted) || has(self.resourceRules)",
      message: "is about objects of the API server: set resourceRules",
      fieldPath: ".maxDeleted",
      holds: ({ resourceRules, maxDeleted }) => maxDeleted === undefined || resourceRules !== undefined,
    },
    {
      rule: '!has(self.bucket) || !has(self.bucket.per) || self.bucket.per == "Pod" || self.triggerPolicy == "LimiterOnly"',
      message: "with per Object or Policy needs triggerPolicy LimiterOnly: an open breaker would refuse what others may send",
      fieldPath: ".bucket",
      holds: ({ triggerPolicy, bucket }) =>
        triggerPolicy === "LimiterOnly" || [undefined, "Pod"].some((per) => fieldAt(bucket, "per") === per),
    },
    {
      rule: '!has(self.trigger) || self.triggerPolicy == "Normal"',
      message: "needs triggerPolicy Normal: only Normal opens a breaker",
      fieldPath: ".trigger",
      holds: ({ triggerPolicy, trigger }) => trigger === undefined || triggerPolicy === "Normal",
    },
  ),
  oldWindowSize,
);

export type RateLimiting = Immutable<z.output<typeof rateLimitingSchema>>;

/** KusionStack's older form has only the type. */
function oldRecoverPolicy(type: string): string {
  const window = type === "SleepingWindow" ? ", sleepingWindowSize: 10m" : "";
  return `must be an object; did you mean {type: ${type.slice(0, 32)}${window}}?`;
}

function* oldWindowSize(limiting: unknown): Iterable<Finding> {
  const path = ["properties", "sleepingWindowSize"];
  const value = fieldAt(limiting, ...path);
  if (value !== undefined) yield { path, value, message: 'has no effect; did you mean "recoverPolicy.sleepingWindowSize"?' };
}

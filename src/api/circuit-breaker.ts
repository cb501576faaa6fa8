// The kind CircuitBreaker: limits and breakers for the requests of pods. Invariant: each field of
// KusionStack's kind is here with its spelling; a field of an older form of it is refused with the new one.
// The manager compiles it into rules; admission validates it.
import { z } from "zod";
import type { Immutable } from "../base/immutable.ts";
import { listMap, withChecks } from "./extensions.ts";
import { interceptRuleSchema } from "./intercept-rule.ts";
import { KUSIONSTACK_GROUP, objectMetaSchema } from "./kind.ts";
import { nonEmptySelector } from "./label-selector.ts";
import { policyKind } from "./policy-kind.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { RECOVER_ANNOTATION, rateLimitingSchema } from "./rate-limiting.ts";
import { boundedRegexes } from "./regex.ts";
import { type Finding, fieldAt, itemsOf, stringsOf, withRules } from "./rule.ts";
import { boundedResourceRules, isSet, MAX_TRAFFIC_RULES, modeSchema } from "./traffic-rules.ts";
import { uniqueNames } from "./unique-names.ts";

/** A label that switches a CircuitBreaker off. */
export const BREAKER_DISABLED = "circuitbreaker.ctrlmesh.kusionstack.io/disable";

const MAX_RECOVER_LENGTH = 256;

const specSchema = withRules(
  withChecks(
    z.strictObject({
      selector: nonEmptySelector().describe(
        "Selects the pods whose proxies enforce the rules, in the namespace of this object. The selector must not be empty.",
      ),
      mode: modeSchema,
      rateLimitings: z
        .array(rateLimitingSchema)
        .max(MAX_TRAFFIC_RULES)
        .optional()
        .meta(listMap("name"))
        .describe("Rules for requests. Every rule that matches a request applies."),
      trafficInterceptRules: z
        .array(interceptRuleSchema)
        .max(MAX_TRAFFIC_RULES)
        .optional()
        .meta(listMap("name"))
        .describe(
          "Other servers than the API server that the pods may call, or may not. They only apply to pods with the annotation ctrlmesh.kruise.io/egress.",
        ),
    }),
    {
      rule: "has(self.rateLimitings) && self.rateLimitings.size() > 0 || has(self.trafficInterceptRules) && self.trafficInterceptRules.size() > 0",
      message: "has no rules: set rateLimitings or trafficInterceptRules",
      holds: ({ rateLimitings, trafficInterceptRules }) => isSet(rateLimitings) || isSet(trafficInterceptRules),
    },
  ),
  specRules,
);

export const circuitBreakerKind = policyKind({
  group: KUSIONSTACK_GROUP,
  kind: "CircuitBreaker",
  plural: "circuitbreakers",
  shortName: "cbk",
  description:
    "CircuitBreaker limits the requests that pods send to the API server and to other servers, and stops them when they are too many or fail. The proxy of each pod counts by itself.",
  spec: specSchema.describe("The pods, and the rules for their requests."),
  metadata: withRules(objectMetaSchema, shortRecovery),
});

export type CircuitBreaker = Immutable<z.output<typeof circuitBreakerKind.schema>>;

/** Returns a valid CircuitBreaker, or the problems of any other value. Never throws. */
export function validateCircuitBreaker(object: unknown): ValidationResult<CircuitBreaker> {
  return validate(circuitBreakerKind.schema, object);
}

function* specRules(spec: unknown): Iterable<Finding> {
  const limitings = itemsOf(fieldAt(spec, "rateLimitings"));
  yield* boundedResourceRules(
    limitings.flatMap((limiting) => itemsOf(fieldAt(limiting, "resourceRules"))),
    ["rateLimitings"],
  );
  const intercepts = itemsOf(fieldAt(spec, "trafficInterceptRules"));
  const expressions = intercepts.filter((rule) => fieldAt(rule, "contentType") === "Regexp");
  yield* boundedRegexes(
    expressions.flatMap((rule) => stringsOf(fieldAt(rule, "contents"))),
    ["trafficInterceptRules"],
    "expressions",
  );
  yield* uniqueNames(spec, ["rateLimitings"]);
  yield* uniqueNames(spec, ["trafficInterceptRules"]);
}

function* shortRecovery(metadata: unknown): Iterable<Finding> {
  const value = fieldAt(metadata, "annotations", RECOVER_ANNOTATION);
  if (typeof value !== "string" || value.length <= MAX_RECOVER_LENGTH) return;
  yield { path: ["annotations", RECOVER_ANNOTATION], value, message: `must have at most ${MAX_RECOVER_LENGTH} characters` };
}

// The kind CircuitBreaker: limits and breakers for the requests of pods. Invariant: it has each field of
// KusionStack's kind, with the same spelling; a field in an older form is refused, with a message that shows
// the new form.
import { z } from "zod";
import type { Immutable } from "../base/json.ts";
import { RECOVER_ANNOTATION } from "../base/recover-annotation.ts";
import { someItem, withChecks } from "./extensions.ts";
import { namedList, nonEmptyList } from "./fields.ts";
import { defineKind, KUSIONSTACK_GROUP, objectMetaSchema } from "./kind.ts";
import { nonEmptySelector } from "./label-selector.ts";
import { POLICY_COLUMNS, policyStatusSchema } from "./policy-status.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { rateLimitingSchema } from "./rate-limiting.ts";
import { boundedRegexes, MAX_REGEX_LENGTH, regexProblems } from "./regex.ts";
import { type Finding, fieldAt, itemsOf, noDuplicates, stringsOf, uniqueNames, withRules } from "./rule.ts";
import { HOST_FORM, methodsSchema, parseServer } from "./server-match.ts";
import { boundedDividedBuckets, boundedResourceRules, MAX_TRAFFIC_RULES, modeSchema, ruleNameSchema } from "./traffic-rules.ts";

export const BREAKER_DISABLED = "circuitbreaker.ctrlmesh.kusionstack.io/disable";

const MAX_RECOVER_LENGTH = 256;

const interceptRuleSchema = withRules(
  z.strictObject({
    name: ruleNameSchema.describe("Name of the rule, in answers and metrics."),
    interceptType: z
      .enum(["Whitelist", "Blacklist"])
      .describe(
        "Whitelist: as long as there is such a rule, requests that match none of them are refused. Blacklist: requests that match are refused, also those that a Whitelist names.",
      ),
    contentType: z
      .enum(["Normal", "Regexp"])
      .describe(
        "Normal: the contents are hosts. Regexp: they are regular expressions in RE2 syntax, which may match anywhere in host or host:port, so anchor them with ^ and $.",
      ),
    contents: withRules(nonEmptyList(z.string().min(1).max(MAX_REGEX_LENGTH), 128), noDuplicates).describe(
      "Hosts, with or without a port. Without one, every port matches. An address of a Blacklist with contentType Normal also refuses the names that have this address.",
    ),
    methods: methodsSchema.describe(
      'HTTP methods, or "*" for all. HTTPS clients open a tunnel with the method CONNECT; the methods inside are encrypted and do not count.',
    ),
  }),
  contentProblems,
);

const specSchema = withRules(
  withChecks(
    z.strictObject({
      selector: nonEmptySelector().describe(
        "Selects the pods whose proxies enforce the rules, in the namespace of this object. The selector must not be empty.",
      ),
      mode: modeSchema,
      rateLimitings: namedList(rateLimitingSchema, MAX_TRAFFIC_RULES).describe(
        "Rules for requests. Every rule that matches a request applies.",
      ),
      trafficInterceptRules: namedList(interceptRuleSchema, MAX_TRAFFIC_RULES).describe(
        "Other servers than the API server that the pods may call, or may not. They only apply to pods with the annotation ctrlmesh.kruise.io/egress.",
      ),
    }),
    someItem("has no rules: set rateLimitings or trafficInterceptRules", "rateLimitings", "trafficInterceptRules"),
  ),
  specRules,
);

export const circuitBreakerKind = defineKind({
  group: KUSIONSTACK_GROUP,
  kind: "CircuitBreaker",
  plural: "circuitbreakers",
  shortName: "cbk",
  description:
    "CircuitBreaker limits the requests that pods send to the API server and to other servers, and stops them when they are too many or fail. The proxy of each pod counts by itself, unless bucket.per is Policy.",
  columns: POLICY_COLUMNS,
  metadata: withRules(objectMetaSchema, boundedRecoverAnnotation),
  spec: specSchema.describe("The pods, and the rules for their requests."),
  status: policyStatusSchema,
});

export type InterceptRule = Immutable<z.output<typeof interceptRuleSchema>>;
export type CircuitBreaker = Immutable<z.output<typeof circuitBreakerKind.schema>>;

export function validateCircuitBreaker(object: unknown): ValidationResult<CircuitBreaker> {
  return validate(circuitBreakerKind.schema, object);
}

function* specRules(spec: unknown): Iterable<Finding> {
  const limitings = itemsOf(fieldAt(spec, "rateLimitings"));
  const resourceRules = limitings.flatMap((limiting) => itemsOf(fieldAt(limiting, "resourceRules")));
  yield* boundedResourceRules(resourceRules, ["rateLimitings"]);
  yield* boundedDividedBuckets(
    limitings.map((limiting) => fieldAt(limiting, "bucket")),
    ["rateLimitings"],
  );
  const intercepts = itemsOf(fieldAt(spec, "trafficInterceptRules"));
  const regexRules = intercepts.filter((rule) => fieldAt(rule, "contentType") === "Regexp");
  const expressions = regexRules.flatMap((rule) => stringsOf(fieldAt(rule, "contents")));
  yield* boundedRegexes(expressions, ["trafficInterceptRules"], "expressions");
  yield* uniqueNames(spec, ["rateLimitings"]);
  yield* uniqueNames(spec, ["trafficInterceptRules"]);
}

function* boundedRecoverAnnotation(metadata: unknown): Iterable<Finding> {
  const value = fieldAt(metadata, "annotations", RECOVER_ANNOTATION);
  if (typeof value !== "string" || value.length <= MAX_RECOVER_LENGTH) return;
  yield { path: ["annotations", RECOVER_ANNOTATION], value, message: `must have at most ${MAX_RECOVER_LENGTH} characters` };
}

function* contentProblems(rule: unknown): Iterable<Finding> {
  const isRegex = fieldAt(rule, "contentType") === "Regexp";
  for (const [index, content] of itemsOf(fieldAt(rule, "contents")).entries()) {
    const problems = isRegex ? regexProblems(content) : hostProblems(content);
    for (const problem of problems) yield { ...problem, path: ["contents", index] };
  }
}

function* hostProblems(content: unknown): Iterable<Finding> {
  if (typeof content !== "string" || content === "" || parseServer(content) !== undefined) return;
  const hint = content.includes("*") ? '; a pattern needs contentType "Regexp"' : "";
  yield { path: [], value: content, message: `${HOST_FORM}${hint}` };
}

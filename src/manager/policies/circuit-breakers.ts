// CircuitBreaker as a policy kind: it selects pods by their labels. Invariant: each of its rules gives at
// most one limit, so that requests to the API server and to other servers share its bucket and its breaker.
import { BREAKER_DISABLED, type CircuitBreaker, type InterceptRule, validateCircuitBreaker } from "../../api/circuit-breaker.ts";
import { durationMs } from "../../api/duration.ts";
import type { RateLimiting } from "../../api/rate-limiting.ts";
import { CIRCUIT_BREAKERS } from "../../api/resources.ts";
import { parseServer } from "../../api/server-match.ts";
import { RECOVER_ANNOTATION } from "../../base/recover-annotation.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import type {
  BucketSpec,
  DeletesSpec,
  EgressRule,
  FailureTrigger,
  LimiterSpec,
  LimitRule,
  UrlRule,
} from "../../policy/policy.ts";
import { compileResourceRule, createPolicyKind, perOf, type RuleHead } from "./policy-kind.ts";

export const circuitBreakers = createPolicyKind({
  resource: CIRCUIT_BREAKERS,
  validate: validateCircuitBreaker,
  offLabel: BREAKER_DISABLED,
  rulesOf({ metadata, spec: { rateLimitings = [], trafficInterceptRules = [] } }, headOf) {
    const recovery = metadata.annotations?.[RECOVER_ANNOTATION] ?? "";
    return {
      limits: rateLimitings.flatMap((limiting) => limitOf(limiting, headOf(limiting.name), recovery) ?? []),
      egress: trafficInterceptRules.map((rule) => egressRuleOf(rule, headOf(rule.name))),
    };
  },
  isFor: ({ spec }, { labels }) => matchesSelector(spec.selector, labels),
  notes,
});

const DEFAULT_MINIMUM_REQUESTS = 20;
const DEFAULT_WINDOW = "10s";

/** Undefined without a bucket to take tokens from, which the schema refuses. */
function limitOf(limiting: RateLimiting, head: RuleHead, recovery: string): LimitRule | undefined {
  const { resourceRules = [], restRules = [] } = limiting;
  const limiter = limiterOf(limiting);
  if (limiter === undefined) return undefined;
  const resources = resourceRules.map(compileResourceRule);
  return { ...head, match: { resources, urls: restRules.map(urlRuleOf), http: [] }, limiter, recovery };
}

function limiterOf(limiting: RateLimiting): LimiterSpec | undefined {
  const { triggerPolicy, bucket, maxDeleted, trigger, recoverPolicy, resourceRules = [] } = limiting;
  switch (triggerPolicy) {
    case "ForceClosed":
      return { kind: "exempt" };
    case "ForceOpened":
      return { kind: "deny" };
    case "LimiterOnly":
      if (bucket !== undefined) return { kind: "bucket", ...bucketOf(bucket), ...perOf(bucket.per) };
      return maxDeleted && { kind: "deletes", ...deletesOf(maxDeleted, resourceRules) };
    case "Normal": {
      const window = recoverPolicy?.type === "SleepingWindow" ? recoverPolicy.sleepingWindowSize : undefined;
      return {
        kind: "breaker",
        ...(bucket && { bucket: bucketOf(bucket) }),
        ...(maxDeleted && { deletes: deletesOf(maxDeleted, resourceRules) }),
        ...(trigger && { trigger: triggerOf(trigger) }),
        ...(window === undefined ? {} : { sleepMs: durationMs(window) }),
      };
    }
    default:
      return triggerPolicy satisfies never;
  }
}

function bucketOf({ burst, interval, limit }: NonNullable<RateLimiting["bucket"]>): BucketSpec {
  return { perSecond: (limit * 1_000) / durationMs(interval), burst };
}

type ResourceRules = NonNullable<RateLimiting["resourceRules"]>;

function deletesOf({ percent, atLeast, interval }: NonNullable<RateLimiting["maxDeleted"]>, rules: ResourceRules): DeletesSpec {
  const namespaces = [...new Set(rules.flatMap((rule) => rule.namespaces))];
  return { percent, atLeast, intervalMs: durationMs(interval), namespaces };
}

function triggerOf(trigger: NonNullable<RateLimiting["trigger"]>): FailureTrigger {
  const { consecutiveErrors, errorPercent, minimumRequests, window, slowerThan } = trigger;
  return {
    ...(consecutiveErrors === undefined ? {} : { consecutive: consecutiveErrors }),
    ...(errorPercent === undefined ? {} : { percent: errorPercent }),
    minimumRequests: minimumRequests ?? DEFAULT_MINIMUM_REQUESTS,
    windowMs: durationMs(window ?? DEFAULT_WINDOW),
    ...(slowerThan === undefined ? {} : { slowerThanMs: durationMs(slowerThan) }),
  };
}

type RestRule = NonNullable<RateLimiting["restRules"]>[number];

/** The host is in the form in which proxies see it. */
function urlRuleOf({ url, method }: RestRule): UrlRule {
  const [, scheme = "", authority = "", rest = ""] = /^(https?:\/\/)([^/?]*)(.*)$/.exec(url) ?? [];
  const { host, port } = parseServer(authority) ?? { host: authority };
  const name = host.includes(":") ? `[${host}]` : host;
  return { url: `${scheme}${name}${port === undefined ? "" : `:${port}`}${rest}`, methods: [method] };
}

function egressRuleOf({ interceptType, contentType, contents, methods }: InterceptRule, head: RuleHead): EgressRule {
  return {
    ...head,
    effect: interceptType === "Whitelist" ? "Allow" : "Deny",
    hosts: contents.flatMap((text) => (contentType === "Regexp" ? { regex: text } : (parseServer(text) ?? []))),
    methods,
  };
}

const TUNNEL = "does not match the tunnels (CONNECT) of HTTPS clients, in which method and path are encrypted";
/** A request that opens a tunnel has one of these methods in its rules. */
const TUNNEL_METHODS: readonly string[] = ["CONNECT", "*"];

function* notes({ spec: { rateLimitings = [], trafficInterceptRules = [] } }: CircuitBreaker): Iterable<string> {
  for (const [index, { properties = {}, restRules = [], recoverPolicy }] of rateLimitings.entries()) {
    const path = `spec.rateLimitings[${index}]`;
    if (recoverPolicy?.type === "Manual" && recoverPolicy.sleepingWindowSize !== undefined)
      yield `${path}.recoverPolicy.sleepingWindowSize has no effect with the type Manual`;
    if (Object.keys(properties).length > 0) yield `${path}.properties has no effect`;
    for (const [at, rule] of restRules.entries()) {
      if (seesNoTunnel(rule)) yield `${path}.restRules[${at}] ${TUNNEL}; "https://host/*" with CONNECT does`;
    }
  }
  for (const [index, { methods }] of trafficInterceptRules.entries()) {
    if (missesTunnels(methods)) yield `spec.trafficInterceptRules[${index}] ${TUNNEL}; add CONNECT to methods`;
  }
}

function missesTunnels(methods: readonly string[]): boolean {
  return !methods.some((method) => TUNNEL_METHODS.includes(method));
}

/** The rule is about HTTPS, and can only match the requests of clients that open no tunnel. */
function seesNoTunnel({ url, method }: RestRule): boolean {
  return url.startsWith("https:") && (missesTunnels([method]) || !/^https:\/\/[^/?]*(\/\*?)?$/.test(url));
}

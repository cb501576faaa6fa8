// The rules of a CircuitBreaker. Pure. Invariant: each of its rules gives at most one, so that requests to
// the API server and to other servers share its bucket and its breaker. Called by circuit-breaker-kind.ts.
import type { CircuitBreaker } from "../../api/circuit-breaker.ts";
import { durationMs } from "../../api/duration.ts";
import { type RateLimiting, RECOVER } from "../../api/rate-limiting.ts";
import type { BucketSpec, FailureTrigger, LimiterSpec, LimitRule, PolicySet } from "../../policy/policy.ts";
import { compileInterceptRule, compileRestRule } from "./compile-egress.ts";
import { compileResourceRule, modeOf, originOf } from "./compile-requests.ts";

const DEFAULT_MINIMUM_REQUESTS = 20;
const DEFAULT_WINDOW = "10s";

export function compileCircuitBreaker({ metadata, spec }: CircuitBreaker): Pick<PolicySet, "limits" | "egress"> {
  const { rateLimitings = [], trafficInterceptRules = [] } = spec;
  const mode = modeOf(spec);
  const origin = (name: string) => originOf("CircuitBreaker", metadata, name);
  const recovery = metadata.annotations?.[RECOVER] ?? "";
  const limits = rateLimitings.flatMap((limiting): LimitRule[] => {
    const { name, resourceRules = [], restRules = [] } = limiting;
    const limiter = limiterOf(limiting);
    if (limiter === undefined) return [];
    const match = { resources: resourceRules.map(compileResourceRule), urls: restRules.map(compileRestRule), http: [] };
    return [{ origin: origin(name), mode, match, limiter, recovery }];
  });
  return { limits, egress: trafficInterceptRules.map((rule) => compileInterceptRule(rule, origin(rule.name), mode)) };
}

/** Undefined if the rule refuses nothing. */
function limiterOf(limiting: RateLimiting): LimiterSpec | undefined {
  const { triggerPolicy, bucket, trigger, recoverPolicy } = limiting;
  switch (triggerPolicy) {
    case "ForceClosed":
      return undefined;
    case "ForceOpened":
      return { kind: "deny" };
    case "LimiterOnly":
      return bucket && { kind: "bucket", ...bucketOf(bucket) };
    case "Normal": {
      const window = recoverPolicy?.type === "SleepingWindow" ? recoverPolicy.sleepingWindowSize : undefined;
      return {
        kind: "breaker",
        ...(bucket && { bucket: bucketOf(bucket) }),
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

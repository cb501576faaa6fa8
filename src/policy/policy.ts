// The traffic policies of one pod, compiled from TrafficPolicies, CircuitBreakers and FaultInjections. Pure
// data: the manager compiles it, the stream carries it, and the engine enforces it. Invariant: a rule says
// all that it needs, so no rule depends on another one.

/** The policies of one pod. */
export interface PolicySet {
  readonly limits: readonly LimitRule[];
  readonly faults: readonly FaultRule[];
  readonly egress: readonly EgressRule[];
}

export const NO_POLICIES: PolicySet = { limits: [], faults: [], egress: [] };

/** The place of a rule: an object and the rule's name in it. */
export interface RuleOrigin {
  readonly kind: "TrafficPolicy" | "CircuitBreaker" | "FaultInjection";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Unique among the limits, the faults or the egress rules of the object. */
  readonly rule: string;
}

/** The rule's name in metrics and in the access log: all objects that reach a pod are of its namespace. */
export function ruleName({ name, rule }: Pick<RuleOrigin, "name" | "rule">): string {
  return `${name}/${rule}`;
}

/** Shadow: the rule is counted and changes no answer. */
export type Mode = "Enforce" | "Shadow";

/** Which requests a rule is about: those that match one of the entries. */
export interface RequestMatch {
  readonly resources: readonly ResourceRule[];
  readonly urls: readonly UrlRule[];
  readonly http: readonly HttpRule[];
  /** Absent: none. */
  readonly admissions?: readonly AdmissionRule[];
}

/**
 * Reviews of the operator's admission webhooks, as the rules of webhook configurations name them
 * (admissionregistration.k8s.io/v1, RuleWithOperations). "*" in a list matches all.
 */
export interface AdmissionRule {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly operations: readonly string[];
  /**
   * `pods` (without subresources), `pods/status`, `pods/*` (pods and their subresources), `*\/status`, "*"
   * (all without subresources), "*\/*".
   */
  readonly resources: readonly string[];
  readonly scope: "Cluster" | "Namespaced" | "*";
}

/** Requests for objects, as the rules of API Priority and Fairness name them. "*" in a list matches all. */
export interface ResourceRule {
  readonly apiGroups: readonly string[];
  /**
   * `pods`, `pods/status`, `pods/*` (the subresources of pods), `*\/status` and "*" (all resources and
   * subresources).
   */
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Namespaces of the objects. Neither cluster-scoped objects nor lists over all namespaces have one. */
  readonly namespaces: readonly string[];
  /** Also cluster-scoped objects, and requests over all namespaces. */
  readonly clusterScope: boolean;
}

/** Requests for a URL. */
export interface UrlRule {
  /**
   * A path of the API server such as `/healthz`, or a URL of another server such as `https://example.com/v1`,
   * which matches with and without a query, or `https://example.com/v1?a=b`. A last segment `*` matches
   * everything below: "*" all paths of the API server, `https://*` all URLs of other servers with this
   * scheme. A tunnel (CONNECT) counts as `https://host:port/`.
   */
  readonly url: string;
  /** HTTP methods in upper case, or "*". A tunnel has the method CONNECT. */
  readonly methods: readonly string[];
}

/**
 * Requests to other servers. What is absent matches all. A tunnel has neither path nor headers, so a rule
 * about these does not match it.
 */
export interface HttpRule {
  /** Host without port, in lower case. */
  readonly host?: TextMatch;
  /** Path without query. */
  readonly path?: TextMatch;
  /** In upper case. */
  readonly method?: string;
  /** All of them have to be there. Names are case-insensitive. */
  readonly headers: readonly HttpHeader[];
}

export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

/** A text. The expression is in RE2 syntax and matches anywhere in the text unless it is anchored. */
export type TextMatch = { readonly exact: string } | { readonly regex: string };

/** A rule that may refuse requests. */
export interface LimitRule {
  readonly origin: RuleOrigin;
  readonly mode: Mode;
  readonly match: RequestMatch;
  readonly limiter: LimiterSpec;
  /** An open breaker closes when this text changes. "" at first. */
  readonly recovery: string;
}

/** A token bucket: it holds at most `burst` tokens and gains `perSecond` of them. */
export interface BucketSpec {
  readonly perSecond: number;
  readonly burst: number;
}

export type LimiterSpec =
  /** Refuses every request. */
  | { readonly kind: "deny" }
  | ({ readonly kind: "bucket" } & BucketSpec)
  /** At most `max` requests at once. Long-running requests count until their answer begins. */
  | { readonly kind: "in-flight"; readonly max: number }
  /**
   * After `failures` failures in a row, requests for this object wait: `baseMs`, doubled with each further
   * failure, at most `maxMs`.
   */
  | { readonly kind: "backoff"; readonly baseMs: number; readonly maxMs: number; readonly failures: number }
  | BreakerSpec;

/** Refuses every request for some time, once the bucket has run out or too many requests have failed. */
export interface BreakerSpec {
  readonly kind: "breaker";
  readonly bucket?: BucketSpec;
  readonly trigger?: FailureTrigger;
  /**
   * After this time one request decides whether the breaker closes. Absent: it stays open until `recovery`
   * changes.
   */
  readonly sleepMs?: number;
}

/** Opens a breaker when requests fail. At least one of `consecutive` and `percent` is set. */
export interface FailureTrigger {
  /** Failures in a row. */
  readonly consecutive?: number;
  /** Failures in percent of the requests of the window. */
  readonly percent?: number;
  /** With fewer requests in the window, `percent` opens nothing. */
  readonly minimumRequests: number;
  readonly windowMs: number;
  /** An answer that takes longer counts as a failure. */
  readonly slowerThanMs?: number;
}

/** A rule that delays or aborts requests. */
export interface FaultRule {
  readonly origin: RuleOrigin;
  readonly mode: Mode;
  readonly match: RequestMatch;
  readonly delay?: { readonly ms: number; readonly percent: number };
  readonly abort?: { readonly status: number; readonly percent: number };
  readonly effective?: TimeWindow;
  /** When the rule ends, in milliseconds since the epoch. Absent: it does not. */
  readonly untilMs?: number;
}

/** When a fault rule is in effect, in UTC. An empty list matches every day or month. */
export interface TimeWindow {
  /** Seconds after midnight. A window whose end is not after its start ends on the next day. */
  readonly startSecond: number;
  readonly endSecond: number;
  /** 0 is Sunday. Days are those on which the window starts. */
  readonly daysOfWeek: readonly number[];
  readonly daysOfMonth: readonly number[];
  /** 1 is January. */
  readonly months: readonly number[];
}

/** A rule about the other servers that a pod may call. */
export interface EgressRule {
  readonly origin: RuleOrigin;
  readonly mode: Mode;
  /**
   * Deny: what matches is refused, whatever else matches. Allow: as long as there is an enforced rule with
   * Allow, what matches none of them is refused.
   */
  readonly effect: "Allow" | "Deny";
  readonly hosts: readonly HostMatch[];
  /**
   * HTTP methods in upper case; empty or with "*" for all. A tunnel has the method CONNECT, since the methods
   * inside are not visible.
   */
  readonly methods: readonly string[];
}

/**
 * A server. `host` is case-insensitive, a name or an address without brackets; no port means every port. The
 * expression is in RE2 syntax, is asked about `host` and about `host:port`, both in lower case, and matches
 * anywhere unless it is anchored.
 */
export type HostMatch = { readonly host: string; readonly port?: number } | { readonly regex: string };

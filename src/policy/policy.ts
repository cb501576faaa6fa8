// The traffic policies of one pod. The manager compiles them, the stream carries them as JSON of this schema,
// and the engine enforces them. Invariant: each rule that fits the schema can be enforced by itself.
import { z } from "zod";
import type { Immutable } from "../base/json.ts";
import { isPattern } from "./text-match.ts";

const list = z.array(z.string());
const count = z.number().nonnegative();

/** An expression in RE2 syntax. It matches anywhere in the text unless it is anchored. */
const regexSchema = z.strictObject({
  regex: z.string().refine(isPattern, { error: "is not an expression in RE2 syntax, or is too long" }),
});
const textMatchSchema = z.union([z.strictObject({ exact: z.string() }), regexSchema]);

/** The requests for which all lists that are there have an entry. */
const exceptionSchema = z.strictObject({
  namespaces: list.optional(),
  names: list.optional(),
  /** As the API server knows them, for example `system:serviceaccount:shop:operator`. */
  users: list.optional(),
});

const resourceSchema = z.strictObject({
  apiGroups: list,
  /** `pods`, `pods/status`, `pods/*` (all subresources of pods), `*\/status`, or "*" (everything). */
  resources: list,
  verbs: list,
  /** Namespaces of the objects. Neither cluster-scoped objects nor lists over all namespaces have one; a Namespace has its own name. */
  namespaces: list,
  /** The rule is also about cluster-scoped objects and about requests over all namespaces. */
  clusterScope: z.boolean(),
  /** The requests of one of these entries are not meant. */
  except: z.array(exceptionSchema).optional(),
});

const urlSchema = z.strictObject({
  // A path such as `/healthz` with everything below it, or a URL such as `https://example.com/v1`, which
  // matches any query, or `https://example.com/v1?a=b`. In a URL, a last segment `*` means the path before it
  // and everything below. `https://*`: all URLs of the scheme. A tunnel (CONNECT) counts as `https://host:port/`.
  url: z.string(),
  /** HTTP methods in upper case, or "*". A tunnel has the method CONNECT. */
  methods: list,
});

const httpSchema = z.strictObject({
  // A name, or an address without brackets, in lower case. A regex is matched against `host` and `host:port`.
  host: textMatchSchema.exactOptional(),
  /** Absent: every port. */
  port: z.number().exactOptional(),
  /** Path without query. */
  path: textMatchSchema.exactOptional(),
  /** In upper case. */
  method: z.string().exactOptional(),
  /** Headers that must all be there. Names are case-insensitive. An absent value stands for every value. */
  headers: z.array(z.strictObject({ name: z.string(), value: z.string().exactOptional() })),
});

const admissionSchema = z.strictObject({
  apiGroups: list,
  apiVersions: list,
  operations: list,
  // `pods` (no subresources), `pods/status`, `pods/*` (pods and their subresources), `*/status`, "*" (all, no
  // subresources), or "*/*" (everything).
  resources: list,
  scope: z.enum(["Cluster", "Namespaced", "*"]),
});

const matchSchema = z.strictObject({
  resources: z.array(resourceSchema),
  urls: z.array(urlSchema),
  http: z.array(httpSchema),
  /** Absent: none. */
  admissions: z.array(admissionSchema).exactOptional(),
});

const originSchema = z.strictObject({
  kind: z.enum(["TrafficPolicy", "CircuitBreaker", "FaultInjection"]),
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** Unique among the limits, the faults or the egress rules of the object. */
  rule: z.string(),
});
const head = {
  origin: originSchema,
  /** Shadow: the rule is counted and changes no answer. */
  mode: z.enum(["Enforce", "Shadow"]),
};

/** It holds at most `burst` tokens and gains `perSecond` of them. */
const bucketSchema = z.strictObject({ perSecond: count, burst: count });
/** Objects that may be deleted in each interval: `percent` of those that there are, and at least `atLeast`. */
const deletesSchema = z.strictObject({
  percent: count,
  atLeast: count,
  intervalMs: z.number().positive(),
  /** Whose objects are counted; "*" for all. */
  namespaces: list,
});
const triggerSchema = z.strictObject({
  /** Failures in a row. */
  consecutive: count.exactOptional(),
  /** Failures in percent of the requests of the window. */
  percent: count.exactOptional(),
  /** With fewer requests in the window, `percent` opens nothing. */
  minimumRequests: count,
  windowMs: z.number().positive(),
  /** An answer that takes longer counts as a failure. */
  slowerThanMs: count.exactOptional(),
});
const breakerSchema = z.strictObject({
  kind: z.literal("breaker"),
  bucket: bucketSchema.exactOptional(),
  deletes: deletesSchema.exactOptional(),
  trigger: triggerSchema.exactOptional(),
  /** After this time a few requests at a time test the server (ramp.ts). Absent: only a change of `recovery` closes the breaker. */
  sleepMs: count.exactOptional(),
});
const limiterSchema = z.discriminatedUnion("kind", [
  /** Refuses every request. */
  z.strictObject({ kind: z.literal("deny") }),
  /** Refuses no request, and takes it out of less specific rules of CircuitBreakers (exemptions.ts). */
  z.strictObject({ kind: z.literal("exempt") }),
  // `per` says what has a bucket of its own: each object that requests name, or all pods of the policy
  // together, which divide it. Absent: each pod.
  z.strictObject({ kind: z.literal("bucket"), ...bucketSchema.shape, per: z.enum(["Object", "Policy"]).exactOptional() }),
  z.strictObject({ kind: z.literal("deletes"), ...deletesSchema.shape }),
  /** At most `max` concurrent requests. Long-running requests count until their answer begins. */
  z.strictObject({ kind: z.literal("in-flight"), max: count }),
  // After `failures` failures in a row, requests for the object are refused for `baseMs`. Each further
  // failure doubles this time, up to `maxMs`.
  z.strictObject({ kind: z.literal("backoff"), baseMs: count, maxMs: count, failures: count }),
  breakerSchema,
]);

export const limitSchema = z
  .strictObject({
    ...head,
    match: matchSchema,
    limiter: limiterSchema,
    /** An open breaker closes when this text changes. "" at first. */
    recovery: z.string(),
  })
  .refine(({ match, limiter }) => (match.admissions ?? []).length === 0 || limiter.kind === "deny", {
    // Anybody can send reviews. A limiter that counts them would let strangers use up the API server's part.
    error: 'must have kind "deny" if match.admissions is set: other limiters would count the reviews of strangers',
    path: ["limiter"],
  });

const windowSchema = z.strictObject({
  /** Seconds after midnight. A window whose end is not after its start ends on the next day. */
  startSecond: count,
  endSecond: count,
  /** 0 is Sunday. Days are those on which the window starts. */
  daysOfWeek: z.array(z.number()),
  daysOfMonth: z.array(z.number()),
  /** 1 is January. */
  months: z.array(z.number()),
});

export const faultSchema = z.strictObject({
  ...head,
  match: matchSchema,
  delay: z.strictObject({ ms: count, percent: count }).exactOptional(),
  abort: z.strictObject({ status: count, percent: count }).exactOptional(),
  effective: windowSchema.exactOptional(),
  /** When the rule ends, in milliseconds since the epoch. Absent: it does not. */
  untilMs: count.exactOptional(),
});

export const egressSchema = z.strictObject({
  ...head,
  // Deny: a request that matches is refused. Allow: as long as such a rule is enforced, a request that
  // matches none of them is refused.
  effect: z.enum(["Allow", "Deny"]),
  // `host` is case-insensitive: a name, or an address without brackets. No port means every port. A regex is
  // matched against `host` and against `host:port`, both in lower case.
  hosts: z.array(z.union([z.strictObject({ host: z.string(), port: z.number().exactOptional() }), regexSchema])),
  /** Methods in upper case; empty or with "*" for all. A tunnel has the method CONNECT. */
  methods: list,
});

export type RuleOrigin = Immutable<z.output<typeof originSchema>>;
/** The form of API Priority and Fairness. "*" in a list matches all. */
export type ResourceRule = Immutable<z.output<typeof resourceSchema>>;
export type RequestException = Immutable<z.output<typeof exceptionSchema>>;
export type UrlRule = Immutable<z.output<typeof urlSchema>>;
/** What is absent matches all. A rule about path or headers matches no tunnel. */
export type HttpRule = Immutable<z.output<typeof httpSchema>>;
/** The form of webhook configurations (admissionregistration.k8s.io/v1, RuleWithOperations). */
export type AdmissionRule = Immutable<z.output<typeof admissionSchema>>;
/** The requests that match one of the entries. */
export type RequestMatch = Immutable<z.output<typeof matchSchema>>;
export type DeletesSpec = Immutable<z.output<typeof deletesSchema>>;
export type BucketSpec = Immutable<z.output<typeof bucketSchema>>;
/** At least one of `consecutive` and `percent` is set. */
export type FailureTrigger = Immutable<z.output<typeof triggerSchema>>;
export type BreakerSpec = Immutable<z.output<typeof breakerSchema>>;
export type LimiterSpec = Immutable<z.output<typeof limiterSchema>>;
export type LimitRule = Immutable<z.output<typeof limitSchema>>;
/** In UTC. An empty list matches every day or month. */
export type TimeWindow = Immutable<z.output<typeof windowSchema>>;
export type FaultRule = Immutable<z.output<typeof faultSchema>>;
export type EgressRule = Immutable<z.output<typeof egressSchema>>;
export type TextMatch = Immutable<z.output<typeof textMatchSchema>>;

export interface PolicySet {
  readonly limits: readonly LimitRule[];
  readonly faults: readonly FaultRule[];
  readonly egress: readonly EgressRule[];
}

export const NO_POLICIES: PolicySet = { limits: [], faults: [], egress: [] };

/** For metrics and the access log: all objects that reach a pod are of its namespace. */
export function ruleName({ name, rule }: Pick<RuleOrigin, "name" | "rule">): string {
  return `${name}/${rule}`;
}

/** Of a rule in all forms that it has had: its state and its share belong to it. */
export function ruleKey({ uid, rule }: Pick<RuleOrigin, "uid" | "rule">): string {
  return `${uid}/${rule}`;
}

/** A budget that pods divide, in millionths. */
export const WHOLE_BUDGET = 1_000_000;

// Policies as a resource type. The body is JSON, since a policy set is a tree of small alternatives that no
// client but the proxy reads: this schema is its contract. Invariant: a rule that is read can be enforced,
// and of each other one a problem names why not. Called by both ends of the stream.
import { createHash } from "node:crypto";
import { z } from "zod";
import { tryParseJson } from "../base/json.ts";
import { type EgressRule, type FaultRule, type LimitRule, type PolicySet, type RuleOrigin, ruleName } from "../policy/policy.ts";
import { isPattern } from "../policy/text-match.ts";
import { headProblems, ResourceInvalidError, type ResourceType, type Versioned } from "./resource-type.ts";

export type PolicyResource = Versioned & PolicySet;

const list = z.array(z.string());
const count = z.number().nonnegative();
const bucket = { perSecond: count, burst: count };

const regex = z.strictObject({
  regex: z.string().refine(isPattern, { error: "is not an expression in RE2 syntax, or is too long" }),
});
const textMatchSchema = z.union([z.strictObject({ exact: z.string() }), regex]);

const matchSchema = z.strictObject({
  resources: z.array(
    z.strictObject({ apiGroups: list, resources: list, verbs: list, namespaces: list, clusterScope: z.boolean() }),
  ),
  urls: z.array(z.strictObject({ url: z.string(), methods: list })),
  http: z.array(
    z.strictObject({
      host: textMatchSchema.exactOptional(),
      path: textMatchSchema.exactOptional(),
      method: z.string().exactOptional(),
      headers: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    }),
  ),
  admissions: z
    .array(
      z.strictObject({
        apiGroups: list,
        apiVersions: list,
        operations: list,
        resources: list,
        scope: z.enum(["Cluster", "Namespaced", "*"]),
      }),
    )
    .exactOptional(),
});

const place = {
  origin: z.strictObject({
    kind: z.enum(["TrafficPolicy", "CircuitBreaker", "FaultInjection"]),
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    rule: z.string(),
  }),
  mode: z.enum(["Enforce", "Shadow"]),
};
const ruleFields = { ...place, match: matchSchema };

const limiterSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("deny") }),
  z.strictObject({ kind: z.literal("bucket"), ...bucket }),
  z.strictObject({ kind: z.literal("in-flight"), max: count }),
  z.strictObject({ kind: z.literal("backoff"), baseMs: count, maxMs: count, failures: count }),
  z.strictObject({
    kind: z.literal("breaker"),
    bucket: z.strictObject(bucket).exactOptional(),
    trigger: z
      .strictObject({
        consecutive: count.exactOptional(),
        percent: count.exactOptional(),
        minimumRequests: count,
        windowMs: z.number().positive(),
        slowerThanMs: count.exactOptional(),
      })
      .exactOptional(),
    sleepMs: count.exactOptional(),
  }),
]);

const windowSchema = z.strictObject({
  startSecond: count,
  endSecond: count,
  daysOfWeek: z.array(z.number()),
  daysOfMonth: z.array(z.number()),
  months: z.array(z.number()),
});

const limitSchema: z.ZodType<LimitRule> = z
  .strictObject({ ...ruleFields, limiter: limiterSchema, recovery: z.string() })
  .refine(({ match, limiter }) => (match.admissions ?? []).length === 0 || limiter.kind === "deny", {
    // Anybody can send a review, so a limiter that counts them would refuse the API server what a stranger
    // has used up.
    error: 'must have kind "deny" if match.admissions is set: other limiters would count the reviews of strangers',
    path: ["limiter"],
  });
const faultSchema: z.ZodType<FaultRule> = z.strictObject({
  ...ruleFields,
  delay: z.strictObject({ ms: count, percent: count }).exactOptional(),
  abort: z.strictObject({ status: count, percent: count }).exactOptional(),
  effective: windowSchema.exactOptional(),
  untilMs: count.exactOptional(),
});
const egressSchema: z.ZodType<EgressRule> = z.strictObject({
  ...place,
  effect: z.enum(["Allow", "Deny"]),
  hosts: z.array(z.union([z.strictObject({ host: z.string(), port: z.number().exactOptional() }), regex])),
  methods: list,
});
const bodySchema = z.record(z.string(), z.array(z.unknown()));
/** What is read of the origin of any rule, also of a newer version. */
const originSchema = z.object({ origin: z.object({ uid: z.string(), name: z.string(), rule: z.string() }) });

/** Far above what objects within their bounds compile to. */
const MAX_BYTES = 16 * 1024 * 1024;

export const POLICY: ResourceType<PolicyResource> = {
  name: "policy",
  encode: ({ limits, faults, egress }) => encoded({ limits, faults, egress }),
  decode(body, head) {
    const { resource, problems } = readPolicies(body, head);
    if (problems.length > 0) throw new ResourceInvalidError(problems);
    return resource;
  },
};

type UnreadOrigin = Pick<RuleOrigin, "uid" | "name" | "rule">;

export interface ReadPolicies {
  /** The rules that this version can read. Its digest is of another set if there are problems. */
  readonly resource: PolicyResource;
  /** The origins of the other rules. */
  readonly unread: readonly UnreadOrigin[];
  /** One for each rule or list that a newer version may understand; empty if all is read. */
  readonly problems: readonly string[];
}

/**
 * Reads what it can: a rule is a whole, so a rule of a newer version is left out, and no part of it is
 * enforced without the others.
 * @throws ResourceInvalidError if the body is no policy set at all, or has a rule without a name
 */
export function readPolicies(body: Uint8Array, head: Versioned): ReadPolicies {
  const problems = headProblems(head);
  const read = bodySchema.safeParse(body.length > MAX_BYTES ? undefined : tryParseJson(body));
  if (!read.success) problems.push(`body: no JSON with lists of rules, of at most ${MAX_BYTES} bytes`);
  if (problems.length > 0 || !read.success) throw new ResourceInvalidError(problems);
  const unread: UnreadOrigin[] = [];
  const rulesOf = <R>(items: readonly unknown[] | undefined, schema: z.ZodType<R>, field: string): R[] =>
    (items ?? []).flatMap((item, index) => {
      const parsed = schema.safeParse(item);
      if (parsed.success) return [parsed.data];
      const named = originSchema.safeParse(item);
      const what = parsed.error.issues.map(({ path, message }) =>
        [...(path.length > 0 ? [path.join(".")] : []), message].join(": "),
      );
      if (!named.success) throw new ResourceInvalidError([`${field}.${index}: ${what.join(", ")}`]);
      const { origin } = named.data;
      unread.push(origin);
      problems.push(`rule "${ruleName(origin)}": ${what.join(", ")}`);
      return [];
    });
  const { limits, faults, egress, ...others } = read.data;
  const set: PolicySet = {
    limits: rulesOf(limits, limitSchema, "limits"),
    faults: rulesOf(faults, faultSchema, "faults"),
    egress: rulesOf(egress, egressSchema, "egress"),
  };
  for (const [name, items] of Object.entries(others)) if (items.length > 0) problems.push(`${name}: not known to this version`);
  const digest = problems.length === 0 ? head.digest : policiesDigest(set);
  return { resource: { version: head.version, digest, ...set }, unread, problems };
}

/**
 * The digest of a policy set: half of a SHA-256, in hex. Equal in every manager replica and after restarts.
 */
export function policiesDigest({ limits, faults, egress }: PolicySet): string {
  return createHash("sha256").update(encoded({ limits, faults, egress })).digest("hex").slice(0, 32);
}

function encoded(set: PolicySet): Buffer {
  return Buffer.from(JSON.stringify(set));
}

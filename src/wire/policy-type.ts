// Policies as a resource type. The body is JSON, since a policy set is a tree of small alternatives that no client but the proxy reads: this
// schema is its contract. Invariant: a set that decodes without an error can be enforced. Otherwise the error names every problem. Called by
// both ends of the stream.
import { createHash } from "node:crypto";
import { z } from "zod";
import type { PolicySet } from "../policy/policy.ts";
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

const policySetSchema: z.ZodType<PolicySet> = z.strictObject({
  limits: z.array(z.strictObject({ ...ruleFields, limiter: limiterSchema, recovery: z.string() })),
  faults: z.array(
    z.strictObject({
      ...ruleFields,
      delay: z.strictObject({ ms: count, percent: count }).exactOptional(),
      abort: z.strictObject({ status: count, percent: count }).exactOptional(),
      effective: windowSchema.exactOptional(),
      untilMs: count.exactOptional(),
    }),
  ),
  egress: z.array(
    z.strictObject({
      ...place,
      effect: z.enum(["Allow", "Deny"]),
      hosts: z.array(z.union([z.strictObject({ host: z.string(), port: z.number().exactOptional() }), regex])),
      methods: list,
    }),
  ),
});

/** Far above what objects within their bounds compile to. */
const MAX_BYTES = 16 * 1024 * 1024;

export const POLICY: ResourceType<PolicyResource> = {
  name: "policy",
  encode: ({ limits, faults, egress }) => encoded({ limits, faults, egress }),
  decode(body, head) {
    const problems = headProblems(head);
    const read = body.length > MAX_BYTES ? undefined : jsonOf(body);
    const parsed = policySetSchema.safeParse(read);
    if (read === undefined) problems.push(`body: no JSON of at most ${MAX_BYTES} bytes`);
    else if (!parsed.success) problems.push(...parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`));
    if (problems.length > 0 || !parsed.success) throw new ResourceInvalidError(problems);
    return { version: head.version, digest: head.digest, ...parsed.data };
  },
};

/** The digest of a policy set: half of a SHA-256, in hex. Equal in every manager replica and after restarts. */
export function policiesDigest({ limits, faults, egress }: PolicySet): string {
  return createHash("sha256").update(encoded({ limits, faults, egress })).digest("hex").slice(0, 32);
}

function encoded(set: PolicySet): Buffer {
  return Buffer.from(JSON.stringify(set));
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"));
  } catch {
    return undefined;
  }
}

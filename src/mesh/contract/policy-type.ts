// Policies as a resource type. The body is JSON; the schemas of src/policy/policy.ts are its contract.
// Invariant: a rule that is read can be enforced, and a problem says of every other rule why it cannot.
import { z } from "zod";
import { egressSchema, faultSchema, limitSchema, type PolicySet, type RuleOrigin, ruleName } from "../../policy/policy.ts";
import { decodeJson, digestOf, firstProblems, ResourceInvalidError, type ResourceType, type Versioned } from "./resource-type.ts";

interface SentSet extends PolicySet {
  /** The uids of objects whose rules the proxy keeps as it has them. The set has no rules of these objects. */
  readonly keep?: readonly string[];
}

export type PolicyResource = Versioned & SentSet;

const keepSchema = z.array(z.string());
const bodySchema = z.record(z.string(), z.array(z.unknown()));
/** The part of a rule's origin that every version can read. */
const originSchema = z.object({ origin: z.object({ uid: z.string(), name: z.string(), rule: z.string() }) });

export const POLICY: ResourceType<PolicyResource> = {
  name: "policy",
  encode: encoded,
  decode(body, head) {
    const { resource, problems } = readPolicies(body, head);
    if (problems.length > 0) throw new ResourceInvalidError(problems);
    return resource;
  },
};

type UnreadOrigin = Pick<RuleOrigin, "uid" | "name" | "rule">;

export interface ReadPolicies {
  /**
   * The rules that this version can read. If it cannot read all, the digest is that of these rules, not the
   * head's.
   */
  readonly resource: PolicyResource;
  /** The origins of the other rules. */
  readonly unread: readonly UnreadOrigin[];
  /** One for each rule or list that a newer version may understand; empty if all is read. */
  readonly problems: readonly string[];
}

/**
 * Reads what it can. A rule that this version cannot read completely, such as a rule of a newer version, is
 * left out as a whole: no part of it is enforced.
 * @throws ResourceInvalidError if the body is no policy set at all, or has a rule without a name
 */
export function readPolicies(body: Uint8Array, head: Versioned): ReadPolicies {
  const problems: string[] = [];
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
  const { limits, faults, egress, keep = [], ...others } = decodeJson(body, head, bodySchema);
  const kept = keepSchema.safeParse(keep);
  if (!kept.success) throw new ResourceInvalidError(["keep: must be a list of uids"]);
  const set: SentSet = {
    limits: rulesOf(limits, limitSchema, "limits"),
    faults: rulesOf(faults, faultSchema, "faults"),
    egress: rulesOf(egress, egressSchema, "egress"),
    ...(kept.data.length > 0 && { keep: kept.data }),
  };
  for (const [name, items] of Object.entries(others)) if (items.length > 0) problems.push(`${name}: not known to this version`);
  const digest = problems.length === 0 ? head.digest : policiesDigest(set);
  return { resource: { version: head.version, digest, ...set }, unread, problems: firstProblems(problems) };
}

export function policiesDigest(set: SentSet): string {
  return digestOf(encoded(set));
}

function encoded({ limits, faults, egress, keep = [] }: SentSet): Buffer {
  return Buffer.from(JSON.stringify({ limits, faults, egress, ...(keep.length > 0 && { keep }) }));
}

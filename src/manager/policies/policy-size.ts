// How large the policies of one pod may be together. Pure. Invariant: policies that fit are far below the
// bound of a message to the proxy. An object that does not fit alone is not valid.
import type { PolicySet } from "../../policy/policy.ts";

export interface PolicySize {
  readonly rules: number;
  /** Pairs of a resource and a namespace. The proxy has an entry for each. */
  readonly pairs: number;
  /** Size of the encoded rules. */
  readonly bytes: number;
}

const MAX: PolicySize = { rules: 4_096, pairs: 65_536, bytes: 8 * 1024 * 1024 };
export const SIZE_BOUND = "4,096 rules, 65,536 pairs of a resource and a namespace, and 8 MiB";

export const NO_SIZE: PolicySize = { rules: 0, pairs: 0, bytes: 0 };

export function sizeOf(set: PolicySet): PolicySize {
  const matching = [...set.limits, ...set.faults];
  if (matching.length + set.egress.length === 0) return NO_SIZE;
  const resourceRules = matching.flatMap(({ match }) => match.resources);
  return {
    rules: matching.length + set.egress.length,
    pairs: resourceRules.reduce((sum, { resources, namespaces }) => sum + resources.length * namespaces.length, 0),
    bytes: Buffer.byteLength(JSON.stringify(set)),
  };
}

export function addSizes(a: PolicySize, b: PolicySize): PolicySize {
  return { rules: a.rules + b.rules, pairs: a.pairs + b.pairs, bytes: a.bytes + b.bytes };
}

export function fits({ rules, pairs, bytes }: PolicySize): boolean {
  return rules <= MAX.rules && pairs <= MAX.pairs && bytes <= MAX.bytes;
}

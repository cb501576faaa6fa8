// How large the policies of one pod may be together. Pure. Invariant: what fits is far below the bound of a
// message to the proxy. An object that does not fit alone is not valid. Called by create-policy-kind.ts and
// pod-policies.ts.
import type { PolicySet } from "../../policy/policy.ts";

export interface PolicySize {
  readonly rules: number;
  /** Pairs of a resource and a namespace. The proxy has an entry for each. */
  readonly places: number;
  /** Encoded. */
  readonly bytes: number;
}

const MAX: PolicySize = { rules: 4_096, places: 65_536, bytes: 8 * 1024 * 1024 };
export const SIZE_BOUND = "4,096 rules, 65,536 pairs of a resource and a namespace, and 8 MiB";

export const NO_SIZE: PolicySize = { rules: 0, places: 0, bytes: 0 };

export function sizeOf(set: PolicySet): PolicySize {
  const matching = [...set.limits, ...set.faults];
  if (matching.length + set.egress.length === 0) return NO_SIZE;
  const places = matching
    .flatMap(({ match }) => match.resources)
    .map(({ resources, namespaces }) => resources.length * namespaces.length);
  return {
    rules: matching.length + set.egress.length,
    places: places.reduce((sum, count) => sum + count, 0),
    bytes: Buffer.byteLength(JSON.stringify(set)),
  };
}

export function addSizes(a: PolicySize, b: PolicySize): PolicySize {
  return { rules: a.rules + b.rules, places: a.places + b.places, bytes: a.bytes + b.bytes };
}

export function fits({ rules, places, bytes }: PolicySize): boolean {
  return rules <= MAX.rules && places <= MAX.places && bytes <= MAX.bytes;
}

// The policies of each pod of a namespace. Pure. Invariant: equal objects make equal sets, in every manager, so that a change of the
// manager changes no proxy.
import type { PolicySet } from "../../policy/policy.ts";
import { policiesDigest } from "../../wire/policy-type.ts";
import { isDoubtful, type KnownPolicy } from "./accepted-policies.ts";
import type { TargetPod } from "./policy-kind.ts";
import { addSizes, fits, NO_SIZE } from "./policy-size.ts";

/** A pod with what its proxy should enforce. */
export interface PodPolicies {
  readonly pod: TargetPod;
  readonly policies: PolicySet;
  readonly digest: string;
  /** Its rules are not known for certain: a proxy that has some keeps them. */
  readonly isDoubtful: boolean;
  /** The uids of the objects that do not fit beside older ones. */
  readonly leftOut: ReadonlySet<string>;
}

type Combined = Pick<PodPolicies, "policies" | "digest" | "leftOut">;

export function podPolicies(known: readonly KnownPolicy[], pods: readonly TargetPod[]): PodPolicies[] {
  const sorted = [...known].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  // Pods with the same policies share one set, which is encoded once.
  const shared = new Map<string, Combined>();
  return pods.map((pod) => {
    const own = sorted.filter(({ policy }) => policy?.isFor(pod));
    const key = own.map(nameOf).join(" ");
    const made = shared.get(key) ?? combine(own);
    shared.set(key, made);
    return { pod, ...made, isDoubtful: known.some((each) => isDoubtful(each, pod.name)) };
  });
}

function nameOf({ kind, object }: KnownPolicy): string {
  return `${kind.resource.kind}/${object.metadata.name ?? ""}`;
}

function combine(own: readonly KnownPolicy[]): Combined {
  const leftOut = leftOutOf(own);
  const rules = own.flatMap(({ object, policy }) => (leftOut.has(object.metadata.uid ?? "") ? [] : (policy?.rules ?? [])));
  const policies: PolicySet = {
    limits: rules.flatMap(({ limits }) => limits),
    faults: rules.flatMap(({ faults }) => faults),
    egress: rules.flatMap(({ egress }) => egress),
  };
  return { policies, digest: policiesDigest(policies), leftOut };
}

/** A proxy refuses a set above the bound of its message as a whole, so the oldest objects come first, and what does not fit stays out. */
function leftOutOf(own: readonly KnownPolicy[]): ReadonlySet<string> {
  const leftOut = new Set<string>();
  let size = NO_SIZE;
  const createdAt = ({ object }: KnownPolicy) => Date.parse(object.metadata.creationTimestamp ?? "") || 0;
  for (const each of [...own].sort((a, b) => createdAt(a) - createdAt(b))) {
    const next = addSizes(size, each.size);
    if (fits(next)) size = next;
    else leftOut.add(each.object.metadata.uid ?? "");
  }
  return leftOut;
}

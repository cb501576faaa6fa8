// The policies of each pod of a namespace. Pure. Invariant: equal objects make equal sets, in every manager,
// so that a change of the manager changes no proxy.
import { NO_POLICIES, type PolicySet } from "../../policy/policy.ts";
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

/**
 * Of all different sets of a namespace together. Each is encoded, hashed, and kept until its proxies have it:
 * a thousand pods that differ by a label each held up the manager for longer than its lease. Room for four
 * times the specs of a namespace (POLICIES_SHARE).
 */
const MAX_SETS_BYTES = 16 * 1024 * 1024;

/**
 * The policies of one pod of the namespace after the other. Pods with the same policies share one set, which
 * is encoded once. A set beyond the bound of the namespace is empty, and doubtful. So the oldest pods come
 * first.
 */
export function podPolicies(known: readonly KnownPolicy[]): (pod: TargetPod) => PodPolicies {
  const sorted = [...known].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const shared = new Map<string, Combined>();
  let bytes = 0;
  const make = (own: readonly KnownPolicy[]): Combined | undefined => {
    const parts = partsOf(own);
    if (bytes + parts.bytes > MAX_SETS_BYTES) return undefined;
    bytes += parts.bytes;
    return combine(parts);
  };
  return (pod) => {
    const own = sorted.filter(({ policy }) => policy?.isFor(pod));
    const key = own.map(nameOf).join(" ");
    const made = shared.get(key) ?? make(own);
    if (made === undefined) return { pod, ...NO_SET, isDoubtful: true, leftOut: new Set(own.map(uidOf)) };
    shared.set(key, made);
    return { pod, ...made, isDoubtful: known.some((each) => isDoubtful(each, pod.name)) };
  };
}

const NO_SET = { policies: NO_POLICIES, digest: policiesDigest(NO_POLICIES) };

function nameOf({ kind, object }: KnownPolicy): string {
  return `${kind.resource.kind}/${object.metadata.name ?? ""}`;
}

function uidOf({ object }: KnownPolicy): string {
  return object.metadata.uid ?? "";
}

interface Parts {
  /** In the order of the arguments. */
  readonly own: readonly KnownPolicy[];
  readonly leftOut: ReadonlySet<string>;
  readonly bytes: number;
}

function combine({ own, leftOut }: Parts): Combined {
  const rules = own.flatMap((each) => (leftOut.has(uidOf(each)) ? [] : (each.policy?.rules ?? [])));
  const policies: PolicySet = {
    limits: rules.flatMap(({ limits }) => limits),
    faults: rules.flatMap(({ faults }) => faults),
    egress: rules.flatMap(({ egress }) => egress),
  };
  return { policies, digest: policiesDigest(policies), leftOut };
}

/**
 * A proxy refuses a set above the bound of its message as a whole, so the oldest objects come first, and what
 * does not fit stays out.
 */
function partsOf(own: readonly KnownPolicy[]): Parts {
  const leftOut = new Set<string>();
  let size = NO_SIZE;
  const createdAt = ({ object }: KnownPolicy) => Date.parse(object.metadata.creationTimestamp ?? "") || 0;
  for (const each of [...own].sort((a, b) => createdAt(a) - createdAt(b))) {
    const next = addSizes(size, each.size);
    if (fits(next)) size = next;
    else leftOut.add(uidOf(each));
  }
  return { own, leftOut, bytes: size.bytes };
}

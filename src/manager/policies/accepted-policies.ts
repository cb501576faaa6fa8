// The policies in force: the newest valid spec of each object. Invariants: if an object becomes invalid, its
// rules stay in force, and a new manager, which does not know these rules, tells the proxies to keep them
// (`isDoubtful`). An object in deletion enforces nothing, although a finalizer may hold it for long.
import { isDeepStrictEqual } from "node:util";
import type { Problem } from "../../api/problems.ts";
import { NO_POLICIES } from "../../policy/policy.ts";
import { beyondShare, POLICIES_SHARE } from "../apps/namespace-share.ts";
import { NO_SIZE, type Policy, type PolicyKind, type PolicyObject, type PolicySize, sizeOf } from "./policy-kind.ts";

export interface KnownPolicy {
  readonly kind: PolicyKind;
  readonly object: PolicyObject;
  /** The content of the newest valid spec that this process has seen. */
  readonly policy: Policy | undefined;
  readonly size: PolicySize;
  /** The problems of the present spec; empty if it is in force. */
  readonly problems: readonly Problem[];
  /** False if the object is beyond the share of its namespace: its present spec was not compiled. */
  readonly isChecked: boolean;
}

export function createAcceptedPolicies() {
  const byNamespace = new Map<string, ReadonlyMap<string, KnownPolicy>>();
  return {
    /** Takes all objects of a namespace, and forgets those that are gone. */
    update(namespace: string, objects: readonly Listed[]): KnownPolicy[] {
      const before = byNamespace.get(namespace);
      const beyond = beyondShare(objects, ({ object }) => [object], POLICIES_SHARE, "policies");
      const policies = objects.map((each) => accept(each, before?.get(each.object.metadata.uid ?? ""), beyond.get(each)));
      if (policies.length === 0) byNamespace.delete(namespace);
      else byNamespace.set(namespace, new Map(policies.map((each) => [each.object.metadata.uid ?? "", each])));
      return policies;
    },
  };
}

type Listed = Pick<KnownPolicy, "kind" | "object">;

/** @param excess why the object is beyond the share of its namespace; undefined if it is not */
function accept({ kind, object }: Listed, before: KnownPolicy | undefined, excess: string | undefined): KnownPolicy {
  const kept = { kind, object, policy: before?.policy, size: before?.size ?? NO_SIZE };
  if (object.metadata.deletionTimestamp !== undefined) return ended(kind, object, before);
  if (excess !== undefined) return { ...kept, problems: [{ path: "", message: excess }], isChecked: false };
  // A status that this manager has written does not change the rules.
  if (before?.isChecked === true && isDeepStrictEqual(inputsOf(before.object), inputsOf(object))) return { ...before, object };
  const compiled = kind.compile(object);
  if (!compiled.ok) return { ...kept, problems: compiled.problems, isChecked: true };
  return { ...kept, policy: compiled.value, size: sizeOf(compiled.value.rules), problems: [], isChecked: true };
}

/** Its pods stay those of its last valid spec, so that the status shows when their proxies have dropped its rules. */
function ended(kind: PolicyKind, object: PolicyObject, before: KnownPolicy | undefined): KnownPolicy {
  const compiled = kind.compile(object);
  const { isFor = () => false } = (compiled.ok ? compiled.value : before?.policy) ?? {};
  const policy: Policy = { rules: NO_POLICIES, off: "the object is being deleted", endsMs: undefined, isFor, notes: [] };
  return { kind, object, policy, size: NO_SIZE, problems: [], isChecked: false };
}

/** What a policy depends on. The generation stands for the spec. */
export function inputsOf({ metadata, status }: PolicyObject): readonly unknown[] {
  const { generation, annotations, labels, deletionTimestamp } = metadata;
  return [generation, annotations, labels, deletionTimestamp, status?.specSince, status?.observedGeneration];
}

/** True if an earlier manager may have given proxies the rules of a spec that is no longer there. */
export function isDoubtful({ object: { status }, policy }: KnownPolicy): boolean {
  return policy === undefined && (status?.currentSpecHash ?? "") !== "";
}

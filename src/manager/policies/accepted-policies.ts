// The policies in force: the newest valid spec of each object. Invariant: if an object becomes invalid, its
// rules stay in force. A new manager does not know these rules, so the pods that had them (`isDoubtful`) keep
// all rules that they have.
import { isDeepStrictEqual } from "node:util";
import type { Problem } from "../../api/problems.ts";
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
  if (excess !== undefined) return { ...kept, problems: [{ path: "", message: excess }], isChecked: false };
  // A status that this manager has written does not change the rules.
  if (before?.isChecked === true && isDeepStrictEqual(inputsOf(before.object), inputsOf(object))) return { ...before, object };
  const compiled = kind.compile(object);
  if (!compiled.ok) return { ...kept, problems: compiled.problems, isChecked: true };
  return { ...kept, policy: compiled.value, size: sizeOf(compiled.value.rules), problems: [], isChecked: true };
}

/** What a policy depends on. The generation stands for the spec. */
export function inputsOf({ metadata, status }: PolicyObject): readonly unknown[] {
  return [metadata.generation, metadata.annotations, metadata.labels, status?.specSince, status?.observedGeneration];
}

/** True if an earlier manager may have given this pod the rules of a spec that is no longer there. */
export function isDoubtful({ object: { status }, policy }: KnownPolicy, podName: string): boolean {
  if (policy !== undefined || (status?.currentSpecHash ?? "") === "") return false;
  // The status names the pods, unless they are too many.
  const { targets, targetStatus = [] } = status ?? {};
  return (targets?.total ?? 0) > targetStatus.length || targetStatus.some((target) => target.podName === podName);
}

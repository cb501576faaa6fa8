// A policy kind from its parts. Called by the file of each kind.
import type { ValidationResult } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { NO_POLICIES, type PolicySet } from "../../policy/policy.ts";
import type { PolicyKind, PolicyObject, TargetPod } from "./policy-kind.ts";
import { fits, SIZE_BOUND, sizeOf } from "./policy-size.ts";

export interface PolicyKindParts<O extends PolicyObject> {
  readonly resource: Resource<O>;
  validate(object: unknown): ValidationResult<O>;
  /** Why the valid object enforces nothing; "" if it does. */
  offReason(object: O): string;
  /** When the valid object ends by itself, in milliseconds since the epoch. Default: it does not. */
  endsMs?(object: O): number | undefined;
  rulesOf(object: O): Partial<PolicySet>;
  isFor(object: O, pod: TargetPod): boolean;
  /** What of the valid object has no effect, or not the expected one, in sentences. */
  notes(object: O): Iterable<string>;
}

export function createPolicyKind<O extends PolicyObject>(parts: PolicyKindParts<O>): PolicyKind<O> {
  const { resource, validate, offReason, endsMs = () => undefined, rulesOf, isFor, notes } = parts;
  return {
    resource,
    compile(object) {
      const checked = validate(object);
      if (!checked.ok) return checked;
      const valid = checked.value;
      const off = offReason(valid);
      const rules = off === "" ? { ...NO_POLICIES, ...rulesOf(valid) } : NO_POLICIES;
      if (!fits(sizeOf(rules)))
        return { ok: false, problems: [{ path: "spec", message: `is too large: a pod may have ${SIZE_BOUND}` }] };
      const content = { rules, off, endsMs: endsMs(valid), notes: [...notes(valid)] };
      return { ok: true, policy: { ...content, isFor: (pod) => isFor(valid, pod) } };
    },
  };
}

/** The reason of an object that is switched off in its spec, or by this label; "" for any other. */
export function switchedOff(
  { metadata, spec }: PolicyObject & { readonly spec: { readonly mode?: unknown } },
  label = "",
): string {
  if (spec.mode === "Disabled") return "spec.mode is Disabled";
  // KusionStack reads the key alone; a value "false" can only mean the opposite.
  const value = metadata.labels?.[label];
  return value === undefined || value === "false" ? "" : `the label ${label} is set`;
}

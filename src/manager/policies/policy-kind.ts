// What a policy asks for, independent of its kind, and the way from an object to its policy. Each kind has
// one file that says what differs. All other parts of the manager work with policies only.
import type { PolicyStatus } from "../../api/policy-status.ts";
import type { Problem, ValidationResult } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { KubeObject } from "../../kube/types.ts";
import {
  type FaultRule,
  type LimitRule,
  NO_POLICIES,
  type PolicySet,
  type ResourceRule,
  type RuleOrigin,
} from "../../policy/policy.ts";
import { fits, SIZE_BOUND, sizeOf } from "./policy-size.ts";

/** An object of a policy kind. */
export interface PolicyObject extends KubeObject {
  readonly status?: PolicyStatus | undefined;
}

/** A pod that carries a proxy. */
export interface TargetPod {
  readonly namespace: string;
  readonly name: string;
  readonly ip: string;
  readonly labels: Labels;
  /** The app of its proxy, and its subset there. */
  readonly app: string;
  readonly subset: string;
  /** Its proxy takes requests to other servers than the API server. */
  readonly hasEgress: boolean;
}

/** The content of a valid object. */
export interface Policy {
  readonly rules: PolicySet;
  /** Why the policy enforces nothing, in words: "mode is Disabled"; "" if it does. */
  readonly off: string;
  /** When the policy ends by itself, in milliseconds since the epoch; undefined if it does not. */
  readonly endsMs: number | undefined;
  /** Whether the policy is for this pod of its namespace. */
  isFor(pod: TargetPod): boolean;
  /** The parts of the spec that have no effect, or not the expected one, in sentences. */
  readonly notes: readonly string[];
}

export type CompiledPolicy =
  | { readonly ok: true; readonly policy: Policy }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** A custom resource that describes policies. */
export interface PolicyKind<O extends PolicyObject = PolicyObject> {
  readonly resource: Resource<O>;
  /** Checks the object, which may be older than its schema. Never throws. */
  compile(object: O): CompiledPolicy;
}

/** The fields that every rule has: its origin and its mode. */
export type RuleHead = Pick<LimitRule, "origin" | "mode">;

/** An object of any kind, with the fields of its spec that mean the same in every kind that has them. */
type SwitchedObject = PolicyObject & {
  readonly spec: { readonly mode?: LimitRule["mode"] | "Disabled" | undefined; readonly disabled?: boolean | undefined };
};

/** What differs between the kinds. All methods but `validate` take a valid object. */
export interface PolicyKindParts<O extends SwitchedObject> {
  readonly resource: Resource<O> & { readonly kind: string };
  validate(object: unknown): ValidationResult<O>;
  /** A label that switches an object off. */
  readonly offLabel?: string;
  /**
   * What the object waits for, in words, before it enforces anything; "" for nothing, which is the default.
   */
  waitsFor?(object: O): string;
  /** When the object ends by itself, in milliseconds since the epoch. Default: it does not. */
  endsMs?(object: O): number | undefined;
  /** @param headOf the head of the rule with this name */
  rulesOf(object: O, headOf: (rule: string) => RuleHead): Partial<PolicySet>;
  isFor(object: O, pod: TargetPod): boolean;
  /** The parts of the spec that have no effect, or not the expected one, in sentences. */
  notes(object: O): Iterable<string>;
}

export function createPolicyKind<O extends SwitchedObject>(parts: PolicyKindParts<O>): PolicyKind<O> {
  const { resource, validate, offLabel = "", waitsFor = () => "", endsMs = () => undefined, rulesOf, isFor, notes } = parts;
  return {
    resource,
    compile(object) {
      const checked = validate(object);
      if (!checked.ok) return checked;
      const valid = checked.value;
      const { namespace = "", name = "", uid = "" } = valid.metadata;
      const mode = valid.spec.mode === "Shadow" ? "Shadow" : "Enforce";
      const kind = resource.kind as RuleOrigin["kind"];
      const headOf = (rule: string): RuleHead => ({ origin: { kind, namespace, name, uid, rule }, mode });
      const off = switchedOff(valid, offLabel) || waitsFor(valid);
      const rules = off === "" ? { ...NO_POLICIES, ...rulesOf(valid, headOf) } : NO_POLICIES;
      if (!fits(sizeOf(rules)))
        return { ok: false, problems: [{ path: "spec", message: `is too large: a pod may have ${SIZE_BOUND}` }] };
      const content = { rules, off, endsMs: endsMs(valid), notes: [...notes(valid)] };
      return { ok: true, policy: { ...content, isFor: (pod) => isFor(valid, pod) } };
    },
  };
}

/** The reason of an object that is switched off in its spec, or by this label; "" for any other. */
function switchedOff({ metadata, spec }: SwitchedObject, label: string): string {
  if (spec.disabled === true) return "spec.disabled is true";
  if (spec.mode === "Disabled") return "spec.mode is Disabled";
  // KusionStack reads the key alone; a value "false" can only mean the opposite.
  const value = metadata.labels?.[label];
  return value === undefined || value === "false" ? "" : `the label ${label} is set`;
}

/** A resource rule in KusionStack's form, in which all namespaces include the cluster scope. */
export function compileResourceRule(rule: Omit<ResourceRule, "clusterScope">): ResourceRule {
  const { apiGroups, resources, verbs, namespaces } = rule;
  return { apiGroups, resources, verbs, namespaces, clusterScope: namespaces.includes("*") };
}

/** True if a rule is about other servers, so that it needs the egress listener of the proxy. */
export function needsEgress({ limits, faults, egress }: PolicySet): boolean {
  const isAboutOthers = ({ match: { http, urls } }: LimitRule | FaultRule) =>
    http.length > 0 || urls.some(({ url }) => /^https?:/.test(url));
  return egress.length > 0 || [...limits, ...faults].some(isAboutOthers);
}

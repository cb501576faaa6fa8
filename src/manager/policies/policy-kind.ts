// Compiles an object of any policy kind to its policy. Each kind has one file with what differs. All other
// parts of the manager work with policies only.
import type { PolicyStatus } from "../../api/policy-status.ts";
import type { ValidationResult } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { KubeObject } from "../../kube/types.ts";
import { MAX_SHARES } from "../../mesh/contract/budget-type.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import {
  type FaultRule,
  type LimitRule,
  NO_POLICIES,
  type PolicySet,
  type ResourceRule,
  type RuleOrigin,
} from "../../policy/policy.ts";

export interface PolicyObject extends KubeObject {
  readonly status?: PolicyStatus | undefined;
}

/** A pod that carries a proxy. */
export interface TargetPod extends PodRef {
  readonly ip: string;
  readonly labels: Labels;
  /** The app of its proxy; "" if it is not known. */
  readonly app: string;
  /** Its subset in the app; undefined if the app is not known or does not exist. */
  readonly subset: string | undefined;
  /** Its proxy takes requests to other servers than the API server. */
  readonly hasEgress: boolean;
  /** False if its proxy has certainly never run. */
  readonly hasRun: boolean;
}

export interface Policy {
  readonly rules: PolicySet;
  /** For example "mode is Disabled", if the policy enforces nothing; else "". */
  readonly off: string;
  /** In milliseconds since the epoch; undefined if it does not end by itself. */
  readonly endsMs: number | undefined;
  /** Takes a pod of the policy's namespace. Unsure: that depends on an app or a subset that is not known. */
  isFor(pod: TargetPod): boolean | "unsure";
  /** The parts of the spec that have no effect, or not the expected one, in sentences. */
  readonly notes: readonly string[];
}

export interface PolicyKind<O extends PolicyObject = PolicyObject> {
  readonly resource: Resource<O>;
  /** The object may be older than its schema. Never throws. */
  compile(object: O): ValidationResult<Policy>;
}

export type RuleHead = Pick<LimitRule, "origin" | "mode">;

/** The fields of a spec mean the same in every kind that has them. */
type SwitchedObject = PolicyObject & {
  readonly spec: { readonly mode?: LimitRule["mode"] | "Disabled" | undefined; readonly disabled?: boolean | undefined };
};

/** What differs between the kinds. All methods but `validate` take a valid object. */
export interface PolicyKindParts<O extends SwitchedObject> {
  readonly resource: Resource<O> & { readonly kind: string };
  validate(object: unknown): ValidationResult<O>;
  /** A label that switches an object off. */
  readonly offLabel?: string;
  /** What the object waits for before it enforces anything, in words; "" (the default) for nothing. */
  waitsFor?(object: O): string;
  /** Default: the object does not end by itself. */
  endsMs?(object: O): number | undefined;
  rulesOf(object: O, headOf: (rule: string) => RuleHead): Partial<PolicySet>;
  isFor(object: O, pod: TargetPod): ReturnType<Policy["isFor"]>;
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
      return { ok: true, value: { ...content, isFor: (pod) => isFor(valid, pod) } };
    },
  };
}

/** "" unless the object is switched off. */
function switchedOff({ metadata, spec }: SwitchedObject, label: string): string {
  if (spec.disabled === true) return "spec.disabled is true";
  if (spec.mode === "Disabled") return "spec.mode is Disabled";
  // KusionStack reads the key alone; a value "false" can only mean the opposite.
  const value = metadata.labels?.[label];
  return value === undefined || value === "false" ? "" : `the label ${label} is set`;
}

/** KusionStack's form, in which all namespaces include the cluster scope. */
export function compileResourceRule(rule: Omit<ResourceRule, "clusterScope">): ResourceRule {
  return { ...rule, clusterScope: rule.namespaces.includes("*") };
}

/** The part of a bucket's limiter that says what has a bucket of its own. */
export function perOf(per: "Pod" | "Object" | "Policy" | undefined): { readonly per?: "Object" | "Policy" } {
  return per === undefined || per === "Pod" ? {} : { per };
}

/** True if a rule is about other servers than the API server, which needs the proxy's egress listener. */
export function needsEgress({ limits, faults, egress }: PolicySet): boolean {
  const isAboutOthers = ({ match: { http, urls } }: LimitRule | FaultRule) =>
    http.length > 0 || urls.some(({ url }) => /^https?:/.test(url));
  return egress.length > 0 || [...limits, ...faults].some(isAboutOthers);
}

/** How large the policies of one pod are together. */
export interface PolicySize {
  readonly rules: number;
  /** Pairs of a resource and a namespace. The proxy has an entry for each. */
  readonly pairs: number;
  readonly bytes: number;
  /** Rules with `bucket.per: Policy`: the proxy has a share of each. */
  readonly shares: number;
}

/** Far below the bound of a message to the proxy. An object that does not fit alone is not valid. */
const MAX: PolicySize = { rules: 1_024, pairs: 16_384, bytes: 2 * 1024 * 1024, shares: MAX_SHARES };
export const SIZE_BOUND = "1,024 rules, 256 divided buckets, 16,384 pairs of a resource and a namespace, and 2 MiB";

export const NO_SIZE: PolicySize = { rules: 0, pairs: 0, bytes: 0, shares: 0 };

export function sizeOf(set: PolicySet): PolicySize {
  const matching = [...set.limits, ...set.faults];
  if (matching.length + set.egress.length === 0) return NO_SIZE;
  const resourceRules = matching.flatMap(({ match }) => match.resources);
  return {
    rules: matching.length + set.egress.length,
    pairs: resourceRules.reduce((sum, { resources, namespaces }) => sum + resources.length * namespaces.length, 0),
    bytes: Buffer.byteLength(JSON.stringify(set)),
    shares: set.limits.filter(isShared).length,
  };
}

export function addSizes(a: PolicySize, b: PolicySize): PolicySize {
  const [rules, pairs] = [a.rules + b.rules, a.pairs + b.pairs];
  return { rules, pairs, bytes: a.bytes + b.bytes, shares: a.shares + b.shares };
}

export function fits({ rules, pairs, bytes, shares }: PolicySize): boolean {
  return rules <= MAX.rules && pairs <= MAX.pairs && bytes <= MAX.bytes && shares <= MAX.shares;
}

/** All pods of the policy divide the bucket of the rule. */
export function isShared({ limiter }: Pick<LimitRule, "limiter">): boolean {
  return limiter.kind === "bucket" && limiter.per === "Policy";
}

// What a policy asks for, independent of its kind. Each kind has one file that turns its objects into
// policies. All other parts of the manager work with policies only.
import type { PolicyStatus } from "../../api/policy-status.ts";
import type { Problem } from "../../api/problems.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { PolicySet } from "../../policy/policy.ts";

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
  /** Why it enforces nothing, in words: "mode is Disabled"; "" if it does. */
  readonly off: string;
  /** When it ends by itself, in milliseconds since the epoch; undefined if it does not. */
  readonly endsMs: number | undefined;
  /** Whether the policy is for this pod of its namespace. */
  isFor(pod: TargetPod): boolean;
  /** What of its spec has no effect, or not the expected one, in sentences. */
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

// What the compilers of the policy kinds share. Pure.
import type { ResourcePolicyRuleSpec, ResourceRuleSpec } from "../../api/traffic-rules.ts";
import type { ObjectMeta } from "../../kube/types.ts";
import type { Mode, RequestMatch, ResourceRule, RuleOrigin, UrlRule } from "../../policy/policy.ts";

const ALL = "*";

const ALL_OBJECTS: ResourceRule = { apiGroups: [ALL], resources: [ALL], verbs: [ALL], namespaces: [ALL], clusterScope: true };
const ALL_URLS: UrlRule = { url: ALL, methods: [ALL] };

/** Every request to the API server. */
export const ALL_REQUESTS: RequestMatch = { resources: [ALL_OBJECTS], urls: [ALL_URLS], http: [] };

/** The place of a rule with this name in an object. */
export function originOf(
  kind: RuleOrigin["kind"],
  { namespace = "", name = "", uid = "" }: ObjectMeta,
  rule: string,
): RuleOrigin {
  return { kind, namespace, name, uid, rule };
}

/** The mode of the rules of a policy that is not off. */
export function modeOf({ mode = "Enforce" }: { readonly mode?: Mode | "Disabled" | undefined }): Mode {
  return mode === "Shadow" ? "Shadow" : "Enforce";
}

/** KusionStack's form: all namespaces include the cluster scope. */
export function compileResourceRule({ apiGroups, resources, verbs, namespaces }: ResourceRuleSpec): ResourceRule {
  return { apiGroups, resources, verbs, namespaces, clusterScope: namespaces.includes(ALL) };
}

/** The form of API Priority and Fairness, which names the cluster scope. */
export function compileResourcePolicyRule(rule: ResourcePolicyRuleSpec): ResourceRule {
  const { apiGroups, resources, verbs, namespaces = [], clusterScope = false } = rule;
  return { apiGroups, resources, verbs, namespaces, clusterScope };
}

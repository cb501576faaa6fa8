// Tests whether a rule about admission matches a review, as kube-apiserver matches the rules of webhook
// configurations (k8s.io/apiserver, admission/plugin/webhook/predicates/rules). Pure. Called by the matcher.
import type { AdmissionRule } from "./policy.ts";
import type { AdmissionSubject } from "./policy-request.ts";

const ALL = "*";

/** The entries of a rule's `resources` that name the resource of the review. */
export function resourceNamesOf({ resource, subresource }: AdmissionSubject): readonly string[] {
  const plain = [resource, ALL].map((name) => (subresource === "" ? name : `${name}/${subresource}`));
  return [...plain, `${resource}/${ALL}`, `${ALL}/${ALL}`];
}

/** True if all but the resource matches. */
export function isAboutReview(rule: AdmissionRule, { group, version, operation, isNamespaced }: AdmissionSubject): boolean {
  const isInScope = rule.scope === ALL || (rule.scope === "Namespaced") === isNamespaced;
  return isInScope && has(rule.apiGroups, group) && has(rule.apiVersions, version) && has(rule.operations, operation);
}

function has(list: readonly string[], value: string): boolean {
  return list.includes(ALL) || list.includes(value);
}

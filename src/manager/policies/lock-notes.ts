// The operator's lock is exempt from policies if it is a Lease in the namespace of the pods, or if the app
// names it. This finds the locks that are neither, and that a policy limits. Pure.

import type { UnnamedLockMessage } from "../../mesh/contract/messages.ts";
import type { FaultRule, LimitRule, PolicySet, ResourceRule } from "../../policy/policy.ts";

/** The requests that keep a lock. */
const VERBS = ["get", "create", "update", "patch"];

/** The lock in words; "" if there is none, or if the rules are not about it. */
export function mayLimitLock({ limits, faults }: PolicySet, lock: UnnamedLockMessage | null | undefined): string {
  if (lock === null || lock === undefined || lock.resource.startsWith("leases")) return "";
  const isHit = ({ match }: LimitRule | FaultRule) => match.resources.some((rule) => isAbout(rule, lock.resource));
  return [...limits, ...faults].some(isHit) ? `${lock.resource} ${lock.lockName}` : "";
}

/** ConfigMaps and Endpoints are of the core group. */
function isAbout({ apiGroups, resources, verbs }: ResourceRule, resource: string): boolean {
  const has = (list: readonly string[], ...texts: readonly string[]) => list.some((each) => each === "*" || texts.includes(each));
  return has(apiGroups, "") && has(resources, resource) && has(verbs, ...VERBS);
}

// TrafficPolicy as a policy kind: it names apps and subsets.
import { TRAFFIC_POLICIES } from "../../api/resources.ts";
import { type TrafficPolicySpec, validateTrafficPolicy } from "../../api/traffic-policy.ts";
import { isSet } from "../../api/traffic-rules.ts";
import { subsetDisplayName } from "../../route/subset-name.ts";
import { compileTrafficPolicy } from "./compile-traffic-policy.ts";
import { createPolicyKind, switchedOff } from "./create-policy-kind.ts";

export const trafficPolicyKind = createPolicyKind({
  resource: TRAFFIC_POLICIES,
  validate: validateTrafficPolicy,
  offReason: (policy) => switchedOff(policy),
  rulesOf: (policy) => ({ limits: compileTrafficPolicy(policy) }),
  isFor: ({ spec }, { app, subset }) => spec.targetVirtualApps.some((target) => target.name === app && names(target, subset)),
  notes: ({ spec: { circuitBreaking } }) =>
    circuitBreaking?.webhook !== undefined && !isSet(circuitBreaking.webhook.admissionRules)
      ? ["spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"]
      : [],
});

function names({ specificSubsets = [] }: TrafficPolicySpec["targetVirtualApps"][number], subset: string): boolean {
  if (specificSubsets.length === 0 || specificSubsets[0] === "*") return true;
  return specificSubsets.includes(subsetDisplayName(subset));
}

// Rules and requests for tests of policies.
import { parseRequestInfo } from "../../src/kube/request-info.ts";
import type { LimiterSpec, LimitRule, RequestMatch, ResourceRule } from "../../src/policy/policy.ts";
import { type PolicyRequest, policyRequestOf } from "../../src/policy/policy-request.ts";

/** All requests for objects, with these exceptions. */
export function resourceRule(changes: Partial<ResourceRule> = {}): ResourceRule {
  return { apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"], clusterScope: true, ...changes };
}

export const ALL_OBJECTS: RequestMatch = { resources: [resourceRule()], urls: [], http: [] };

/** An enforced rule about all objects. */
export function limitRule(limiter: LimiterSpec, changes: Partial<LimitRule> & { readonly name?: string } = {}): LimitRule {
  const { name = "rule", ...rest } = changes;
  const origin = { kind: "CircuitBreaker", namespace: "shop", name: "guard", uid: "uid-1", rule: name } as const;
  return { origin, mode: "Enforce", match: ALL_OBJECTS, limiter, recovery: "", ...rest };
}

/** The request of a request line such as "DELETE /api/v1/namespaces/a/pods/p". */
export function policyRequest(line: string, isLock = false): PolicyRequest {
  const [method = "", target = ""] = line.split(" ");
  return policyRequestOf(parseRequestInfo(method, target), isLock);
}

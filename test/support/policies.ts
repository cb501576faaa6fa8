// Rules and requests for tests of policies.
import { parseRequestInfo } from "../../src/kube/request-info.ts";
import type { EgressRule, LimiterSpec, LimitRule, RequestMatch, ResourceRule } from "../../src/policy/policy.ts";
import { egressRequestOf, type PolicyRequest, policyRequestOf } from "../../src/policy/policy-request.ts";
import { targetOf } from "../../src/proxy/egress/target.ts";

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

/** An enforced rule about other servers. */
export function egressRule(
  effect: EgressRule["effect"],
  hosts: EgressRule["hosts"],
  { name = "rule", ...changes }: Partial<EgressRule> & { readonly name?: string } = {},
): EgressRule {
  const { origin, mode } = limitRule({ kind: "deny" }, { name });
  return { origin, mode, effect, hosts, methods: [], ...changes };
}

/** The request to another server of a request line such as "GET http://a.example/v1" or "CONNECT a.example:443". */
export function egressRequest(line: string, headers: Readonly<Record<string, string>> = {}): PolicyRequest {
  const [method = "", target = ""] = line.split(" ");
  return egressRequestOf(method, targetOf(method, target, headers));
}

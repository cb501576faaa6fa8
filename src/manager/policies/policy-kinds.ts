// The policy kinds of this version.
import { circuitBreakers } from "./circuit-breakers.ts";
import { faultInjections } from "./fault-injections.ts";
import type { PolicyKind } from "./policy-kind.ts";
import { trafficPolicies } from "./traffic-policies.ts";

export const POLICY_KINDS: readonly PolicyKind[] = [trafficPolicies, circuitBreakers, faultInjections];

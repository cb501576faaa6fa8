// The policy kinds of this version.
import { circuitBreakerKind } from "./circuit-breaker-kind.ts";
import { faultInjectionKind } from "./fault-injection-kind.ts";
import type { PolicyKind } from "./policy-kind.ts";
import { trafficPolicyKind } from "./traffic-policy-kind.ts";

export const POLICY_KINDS: readonly PolicyKind[] = [trafficPolicyKind, circuitBreakerKind, faultInjectionKind];

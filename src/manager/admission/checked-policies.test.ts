import { describe, expect, it } from "vitest";
import { CALLER } from "../../../test/support/review-caller.ts";
import { sampleCircuitBreaker, sampleTrafficPolicy } from "../../../test/support/traffic-objects.ts";
import { POLICY_KINDS } from "../policies/policy-kinds.ts";
import type { AdmissionRequest } from "./admission-review.ts";
import { checkedPolicies } from "./checked-policies.ts";
import { createValidateWebhook } from "./validate-webhook.ts";

const review = createValidateWebhook(checkedPolicies(POLICY_KINDS));
const breakers = { group: "ctrlmesh.kusionstack.io", version: "v1alpha1", resource: "circuitbreakers" };
const ask = (more: Partial<AdmissionRequest>) =>
  review({ uid: "u", resource: breakers, operation: "CREATE", namespace: "ops", name: "guard", ...more }, CALLER);
const bad = sampleCircuitBreaker({ recoverPolicy: undefined });

describe("the validating webhook of the policy kinds", () => {
  it("refuses an invalid policy with its problems", async () => {
    const worse = sampleCircuitBreaker({ recoverPolicy: "SleepingWindow", bucket: undefined });
    expect(await ask({ object: worse })).toMatchObject({
      allowed: false,
      reason: "Invalid",
      message: expect.stringMatching(/^CircuitBreaker guard has 2 problems: spec\.rateLimitings\[0\]\.recoverPolicy: /),
    });
  });

  it("allows a valid one, with a warning for each field without effect", async () => {
    expect(await ask({ object: sampleCircuitBreaker() })).toEqual({ allowed: true, warnings: [] });
    const resource = { ...breakers, group: "ctrlmesh.kruise.io", resource: "trafficpolicies" };
    const object = sampleTrafficPolicy({ circuitBreaking: { webhook: {} } });
    expect(await ask({ resource, object })).toEqual({
      allowed: true,
      warnings: ["spec.circuitBreaking.webhook has no admissionRules, so it refuses nothing"],
    });
  });

  it("allows an edit of an invalid policy that adds no problem", async () => {
    expect(await ask({ operation: "UPDATE", object: bad, oldObject: bad })).toEqual({
      allowed: true,
      warnings: [expect.stringContaining("not corrected yet: spec.rateLimitings[0].recoverPolicy: required")],
    });
    const worse = sampleCircuitBreaker({ recoverPolicy: undefined }, { mode: "On" });
    expect(await ask({ operation: "UPDATE", object: worse, oldObject: bad })).toMatchObject({
      allowed: false,
      message: expect.stringContaining("has 1 problem: spec.mode"),
    });
  });
});

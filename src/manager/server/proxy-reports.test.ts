import { expect, it } from "vitest";
import { policyStatusSchema } from "../../api/policy-status.ts";
import { NO_REPORTS } from "../../mesh/contract/messages.ts";
import { withReport } from "./proxy-reports.ts";

it("whatever a proxy reports of its policies can be a status", () => {
  const rules = Array.from({ length: 100 }, () => ({
    uid: "u".repeat(999),
    rule: "r".repeat(999),
    opened: true,
    sinceMs: 2 ** 60,
    halfOpen: true,
    cause: "c".repeat(999),
  }));
  const { policies } = withReport(NO_REPORTS, { report: "policies", policies: { digest: "d".repeat(999), rules } }) ?? NO_REPORTS;
  const limitingSnapshots = policies.rules.map(({ rule, sinceMs }) => ({
    name: rule,
    state: "Opened",
    lastTransitionTime: new Date(sinceMs).toISOString(),
  }));
  expect(limitingSnapshots.length).toBeGreaterThan(0);
  const targetStatus = [{ podName: "p", configHash: policies.digest, limitingSnapshots }];
  expect(policyStatusSchema.safeParse({ targetStatus }).error).toBeUndefined();
});

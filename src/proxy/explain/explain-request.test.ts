import { describe, expect, it } from "vitest";
import { limitRule, resourceRule } from "../../../test/support/policies.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { enforced } from "../../mesh/ownership/enforced.ts";
import { NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import { readAskedRequest } from "./asked-request.ts";
import { explainRequest } from "./explain-request.ts";

const SPARES_ADMINS = limitRule(
  { kind: "deny" },
  { match: { resources: [resourceRule({ except: [{ users: ["admin"] }] })], urls: [], http: [] } },
);

function explain(more: Readonly<Record<string, string>> = {}) {
  const { policies } = runningPolicies({ limits: [SPARES_ADMINS] });
  const callers = { ...NO_CALLER_POLICY, defaultOnlyUserAgents: ["debug*"] };
  const current = enforced(snapshot(table([subset("blue")], { a: [0] }), { subset: "blue", callers }));
  const query = new URLSearchParams({ verb: "get", resource: "configmaps", namespace: "a", name: "web", ...more });
  return explainRequest(readAskedRequest(query), {
    session: { current },
    policies,
    gate: { closedFor: undefined },
    random: () => 0,
  });
}

describe("an explanation of a request whose sender is not named", () => {
  it("depends on the user if a rule that would refuse it spares users", () => {
    expect(explain()).toMatchObject({
      decision: "depends",
      message: expect.stringContaining("the user of the operator decides"),
    });
    expect(explain({ user: "admin", userAgent: "operator" }).decision).toBe("forwarded");
    expect(explain({ user: "other" }).decision).toBe("refused");
  });

  it("says that some user agents are served in another way", () => {
    const stages = (more: Readonly<Record<string, string>>) => explain(more).steps.map(({ stage }) => stage);
    expect(stages({})).toContain("caller");
    expect(stages({ userAgent: "operator" })).not.toContain("caller");
  });
});

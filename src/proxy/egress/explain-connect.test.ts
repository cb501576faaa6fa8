import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { egressRule, limitRule } from "../../../test/support/policies.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { silentLogger } from "../../base/log.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import type { PolicySet } from "../../policy/policy.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { admit } from "./admit.ts";
import { createClusterGate } from "./cluster-gate.ts";
import { EgressError } from "./egress-error.ts";
import { explainConnect } from "./explain-connect.ts";
import { targetOf } from "./target.ts";
import { createVisits } from "./visits.ts";

interface Facts {
  readonly clusters?: readonly ClusterRoute[];
  readonly closedFor?: string;
  readonly leftMs?: number;
  readonly authorization?: string;
  readonly policies?: Partial<PolicySet>;
  readonly server?: string;
}

/** What the explanation says, and what the proxy then does. */
async function both({ clusters = [], closedFor, leftMs = 5_000, authorization, policies: set = {}, server }: Facts) {
  const clock = createFakeClock();
  const session = createEnforcer();
  session.enforce(snapshot(table([], {}), { subset: "blue", version: 7, clusters }));
  const { policies } = runningPolicies(set);
  const [home, gate, random] = [{ leftMs: () => leftMs, authorization }, { closedFor }, () => 0];
  const target = targetOf("CONNECT", server ?? "eu.example:443", {});
  const says = explainConnect(target, { session, policies, gate, home, random });
  const metrics = { decided: () => undefined, open: () => undefined };
  const visits = createVisits({ clock, metrics, accessLog: { pick: () => undefined } });
  const gateOfClusters = createClusterGate({ session, home, lock: { closedFor }, clock, log: silentLogger() });
  const visit = visits.begin("CONNECT");
  const does = await admit("CONNECT", target, { session, policies, random, clusters: gateOfClusters }, visit).then(
    () => ({ decision: "forwarded" }),
    (error: unknown) => {
      if (!(error instanceof EgressError)) throw error;
      return { decision: "refused", reason: error.code, code: error.status, message: error.message };
    },
  );
  visit.over();
  return { says, does };
}

const eu = (owner: string, more: Partial<ClusterRoute> = {}): ClusterRoute => ({
  name: "eu",
  servers: ["eu.example:443"],
  drainMs: 5_000,
  owner,
  ...more,
});

const match = { resources: [], urls: [{ url: "https://eu.example:443/", methods: ["*"] }], http: [] };
const { origin } = limitRule({ kind: "deny" });
const abort = { status: 502, percent: 100 };
const FAULT = { origin, mode: "Enforce", match, abort } as const;
const LIMITS = { limits: [limitRule({ kind: "deny" }, { match })] };
const DENIES = { egress: [egressRule("Deny", [{ host: "eu.example" }])] };

describe("an explanation of CONNECT", () => {
  it.each<[string, Facts, string]>([
    ["to a server of no cluster", {}, "forwarded"],
    ["by the owner", { clusters: [eu("blue")] }, "forwarded"],
    ["by a pod of another subset", { clusters: [eu("green")] }, "CLUSTER_NOT_OWNED"],
    ["while the cluster moves", { clusters: [eu("blue", { isFenced: true })] }, "CLUSTER_MOVES"],
    ["while the lock has a new name", { clusters: [eu("blue")], closedFor: "new" }, "CLUSTER_MOVES"],
    ["before the first proof", { clusters: [eu("blue")], leftMs: 0 }, "HOME_UNPROVEN"],
    ["after the last proof", { clusters: [eu("blue")], leftMs: -1, authorization: "Bearer x" }, "HOME_UNPROVEN"],
    ["that a rule refuses before the cluster does", { clusters: [eu("green")], policies: DENIES }, "EGRESS_DENIED"],
    ["that a fault answers", { policies: { faults: [FAULT] } }, "FAULT_INJECTED"],
    ["that a limit refuses", { clusters: [eu("blue")], policies: LIMITS }, "BREAKER_OPEN"],
    ["to the server in another form", { clusters: [eu("green")], server: "EU.example.:443" }, "CLUSTER_NOT_OWNED"],
  ])("%s says what the proxy does", async (_, facts, outcome) => {
    const { says, does } = await both(facts);
    expect(says).toMatchObject(does);
    expect(says).toMatchObject({ app: "shop/app", subset: "blue", version: 7, request: "CONNECT eu.example:443" });
    expect(does).toMatchObject(outcome === "forwarded" ? { decision: outcome } : { reason: outcome });
  });

  it("names the cluster of the server", async () => {
    const { says } = await both({ clusters: [eu("green")] });
    expect(says.steps).toEqual([{ stage: "cluster", says: "this is cluster eu" }]);
    expect(says.message).toBe('ctrlmesh egress: cluster "eu" belongs to subset "green"');
  });

  it("names a fault that some requests get", async () => {
    const rule = { ...FAULT, abort: { ...abort, percent: 1 }, delay: { ms: 2_000, percent: 10 } };
    const { says } = await both({ policies: { faults: [{ ...rule, mode: "Shadow" }] } });
    expect(says).toMatchObject({ decision: "forwarded", steps: [{ stage: "faults" }, { stage: "cluster" }] });
    expect(says.steps[0]?.says).toContain("delays 10 % by 2 s and answers 1 % with 502 (mode Shadow: it only counts)");
  });

  it("says that a sidecar without egress does not see the request", () => {
    const session = createEnforcer();
    session.enforce(snapshot(table([], {}), { subset: "blue", clusters: [eu("green")] }));
    const { policies } = runningPolicies();
    const target = targetOf("CONNECT", "eu.example:443", {});
    const deps = { session, policies, gate: { closedFor: undefined }, home: undefined, random: () => 0 };
    expect(explainConnect(target, deps)).toMatchObject({ decision: "forwarded", message: expect.stringContaining("annotation") });
  });
});

import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { limitRule } from "../../../test/support/policies.ts";
import { readReview } from "../../../test/support/read-review.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { silentLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import { enforced } from "../../mesh/ownership/enforced.ts";
import { createPolicies } from "../policies/policies.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { createPlacesBefore, decideReview, type ReviewQuestion } from "./decide-review.ts";

const request = {
  uid: "1",
  operation: "CREATE",
  namespace: "prod",
  resource: { group: "apps", version: "v1", resource: "deployments" },
};
const subject = readReview(Buffer.from(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request })));
if (subject === undefined) throw new Error("no review");
const ADMISSIONS = [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: "*" as const }];

function world() {
  const session = createEnforcer();
  const registry = createRegistry("proxy", "test");
  const common = { clock: createFakeClock(), random: () => 0, log: silentLogger(), managerAwayMs: () => 0 };
  const policies = createPolicies({ ...common, metrics: createPolicyMetrics(registry) });
  const deps = { session, policies, before: createPlacesBefore() };
  const decide = (more: Partial<ReviewQuestion> = {}) =>
    decideReview({ subject: subject as ReviewQuestion["subject"], forwardedAs: undefined, isFirst: true, ...more }, deps);
  return { session, policies, decide };
}

it("decides by the routes in force", () => {
  const { session, decide } = world();
  expect(decide()).toEqual({ kind: "no-routes" });
  session.enforce(snapshot(table([subset("canary")], { prod: [] })));
  expect(decide()).toEqual({ kind: "routed", subset: "", route: { kind: "local" } });
  session.enforce(snapshot(table([subset("canary")], { prod: [0] })));
  expect(decide()).toMatchObject({ route: { kind: "peer", to: { subset: "canary", as: "owner" } } });
  expect(decide({ forwardedAs: "owner" })).toMatchObject({ route: { kind: "redirect", to: { subset: "canary" } } });
});

it("policies judge a review once, in the pod that got it from the API server", () => {
  const { session, policies, decide } = world();
  session.enforce(snapshot(table([], { prod: [] })));
  const match = { resources: [], urls: [], http: [], admissions: ADMISSIONS };
  const rule = limitRule({ kind: "deny" }, { name: "guard", match });
  policies.enforce({ limits: [rule], faults: [], egress: [] }, "digest");
  expect(decide()).toMatchObject({ kind: "limited", message: expect.stringContaining("guard") });
  expect(decide({ isFirst: false })).toMatchObject({ kind: "routed" });
  expect(decide({ forwardedAs: "owner" })).toMatchObject({ kind: "routed" });
});

const DEPLOYMENTS = { group: "apps", resource: "deployments" };
const RULES = [subset("canary"), subset("blue")];
const stateOf = (members: Record<string, readonly number[]>, fenced: readonly string[] = []) =>
  enforced(snapshot(table(RULES, members, { fenced }), { subset: "canary" }));

it("remembers the owner from before the fence, as long as the fence lasts", () => {
  const places = createPlacesBefore();
  const owner = (place: string) => places.ownerBefore(DEPLOYMENTS, place);
  const states = [
    stateOf({ a: [1], b: [] }),
    stateOf({ a: [0], b: [] }, ["a"]),
    stateOf({ a: [0], b: [0] }, ["a", "b"]),
    stateOf({ a: [0], b: [0] }, ["b"]),
  ];
  const seen = states.map((now, index) => {
    places.follow(now, states[index - 1]);
    return [owner("a"), owner("b")];
  });
  const [blue, stable] = [
    { kind: "subset", subset: "blue" },
    { kind: "subset", subset: "" },
  ];
  expect(seen).toMatchObject([
    [undefined, undefined],
    [blue, undefined],
    [blue, stable],
    [undefined, stable],
  ]);
});

it("does not know who owned what was fenced from the start", () => {
  const places = createPlacesBefore();
  const first = stateOf({ a: [0] }, ["a"]);
  places.follow(first, undefined);
  places.follow(stateOf({ a: [0] }, ["a"]), first);
  expect(places.ownerBefore(DEPLOYMENTS, "a")).toBeUndefined();
});

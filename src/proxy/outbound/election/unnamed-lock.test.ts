// An elector whose lock the app does not name, in a namespace that its subset does not own.
import { describe, expect, it } from "vitest";
import { CONFIGMAPS, ENDPOINTS, jsonBody, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Call, DecisionReason } from "../../call/call.ts";

const FIELD = "spec.configuration.controller.leaderElectionName";
const REFUSED = 'ctrlmesh: get leases.coordination.k8s.io "op": namespace "shop" belongs to the default subset';
const ELECTOR = { headers: { "user-agent": "manager/v1 (linux/amd64) kubernetes/abc/leader-election" } };

/** A pod whose namespace another subset owns. */
function refused(lockName = "shop-lock", reason: DecisionReason = "other-subset") {
  return setupElection({ lockName }, (call: Call) => {
    call.record.decision = "refused";
    call.record.reason = reason;
    throw new StatusError("Forbidden", REFUSED);
  });
}

describe("a refused request for a Lease of the pod's namespace", () => {
  it.each([
    ["GET", {}],
    ["PUT", jsonBody(lease("op"))],
    ["PATCH", jsonBody({ spec: {} })],
  ])("%s says that the app names another lock, in the message and in a cause", async (method, options) => {
    const { refusal, unnamed } = refused();
    const status = await refusal(method, `${LEASES}/op`, options);
    const cause =
      '"op" looks like a leader-election lock, and the VirtualApp names "shop-lock": if it is the operator\'s lock, delete ' +
      `the VirtualApp, wait until it is deleted, and create it again with ${FIELD} "op"`;
    expect(status).toMatchObject({
      code: 403,
      reason: "Forbidden",
      message: `${REFUSED}; ${cause}`,
      details: { causes: [{ reason: "LockNotNamed", message: cause }] },
    });
    expect(unnamed).toEqual([{ lockName: "op", resource: "leases.coordination.k8s.io" }]);
  });

  it("says that the app names no lock", async () => {
    const { refusal, unnamed } = refused("");
    expect((await refusal("GET", `${LEASES}/op`)).message).toMatch(
      /and the VirtualApp names none: if it is the operator's lock, set [\w.]+ to "op"$/,
    );
    expect(unnamed).toHaveLength(1);
  });

  it.each(["moving", "default-only-caller"] as const)("is no elector's if the reason is %s", async (reason) => {
    const { refusal, unnamed } = refused("shop-lock", reason);
    expect((await refusal("GET", `${LEASES}/op`)).message).toBe(REFUSED);
    expect(unnamed).toEqual([]);
  });
});

describe("a refused request for a ConfigMap or Endpoints", () => {
  it.each([CONFIGMAPS, ENDPOINTS])("is an elector's by its User-Agent only (%s)", async (path) => {
    const { refusal, unnamed } = refused();
    expect((await refusal("GET", `${path}/op`)).message).toBe(REFUSED);
    expect(unnamed).toEqual([]);
    expect((await refusal("GET", `${path}/op`, ELECTOR)).details?.causes).toMatchObject([{ reason: "LockNotNamed" }]);
    expect(unnamed).toMatchObject([{ lockName: "op" }]);
  });
});

it.each([
  ["GET", "/apis/coordination.k8s.io/v1/namespaces/other/leases/op"],
  ["GET", "/api/v1/namespaces/shop/secrets/op"],
  ["GET", `${CONFIGMAPS}/op/status`],
  ["DELETE", `${LEASES}/op`],
  ["GET", LEASES],
])("%s %s is no elector's request", async (method, target) => {
  const { refusal, unnamed } = refused();
  expect((await refusal(method, target, ELECTOR)).message).toBe(REFUSED);
  expect(unnamed).toEqual([]);
});

it("an answer of the API server's own is left as it is", async () => {
  const { send, unnamed } = setupElection({}, () => ({ status: 403, headers: {}, body: null }));
  expect((await send("GET", `${LEASES}/op`)).status).toBe(403);
  expect(unnamed).toEqual([]);
});

it("the report names one lock at a time, and ends 6 min after the last refusal", async () => {
  const { refusal, unnamed, clock } = refused();
  await refusal("GET", `${LEASES}/op`);
  await refusal("GET", `${LEASES}/second`);
  await clock.advance(359_000);
  await refusal("GET", `${LEASES}/op`);
  await clock.advance(359_999);
  expect(unnamed).toEqual([{ lockName: "op", resource: "leases.coordination.k8s.io" }]);
  await clock.advance(1);
  expect(unnamed.slice(1)).toEqual([null]);
  await refusal("GET", `${LEASES}/second`);
  expect(unnamed.slice(2)).toMatchObject([{ lockName: "second" }]);
});

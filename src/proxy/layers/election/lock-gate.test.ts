import { describe, expect, it } from "vitest";
import { CONFIGMAPS, echo, jsonBody, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { callOf, jsonReply } from "../../../../test/support/layer-call.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { createStatus } from "../../../kube/status.ts";

const PODS = "/api/v1/namespaces/team/pods";
const pod = jsonBody({ metadata: { name: "x" } });

// A leader of the default subset that comes into "blue", whose lock another pod may hold.
async function relabelled({ seconds = 15, blueIsFree = false } = {}) {
  const election = setupElection({ subset: "" }, (call) =>
    call.target.includes("---blue") && call.method === "PUT" && !blueIsFree
      ? jsonReply(createStatus("Conflict", "held"), 409)
      : echo(call),
  );
  const renew = () => {
    const lock = lease("shop-lock", "me");
    return election.send(
      "PUT",
      `${LEASES}/shop-lock`,
      jsonBody({ ...lock, spec: { ...lock.spec, leaseDurationSeconds: seconds } }),
    );
  };
  await renew();
  election.enforcer.enforce(routes(2, { blue: ["team"] }));
  return { ...election, renew };
}

describe("a pod whose lock has another name now, and whose operator still believes that it leads", () => {
  it("writes nothing: 503, to be repeated, with the reason", async () => {
    const { refusal, renew, send, upstream } = await relabelled();
    await renew(); // of the new lock: somebody else holds it
    const before = upstream.calls.length;
    for (const [method, target] of [
      ["POST", PODS],
      ["PUT", `${PODS}/x/status`],
      ["PATCH", `${PODS}/x`],
      ["DELETE", `${PODS}/x`],
      ["DELETE", PODS],
      ["POST", CONFIGMAPS], // where a lock might be created, and is not
      ["DELETE", `${CONFIGMAPS}?labelSelector=a`],
      ["POST", `${PODS}/x/exec?command=rm`],
      ["GET", `${PODS}/x/exec?command=rm`], // as WebSockets make it
      ["GET", `${PODS}/x/attach`],
      ["GET", `${PODS}/x/portforward`],
      ["GET", `${PODS}/x/proxy/restart`],
    ] as const) {
      const status = await refusal(method, target, method === "DELETE" || method === "GET" ? undefined : pod);
      expect([status.code, status.details?.retryAfterSeconds], `${method} ${target}`).toEqual([503, 1]);
      expect(status.message).toContain('"shop-lock---blue"');
    }
    expect(upstream.calls.length).toBe(before);
    for (const read of [PODS, `${PODS}/x`, `${PODS}/x/log`]) expect((await send("GET", read)).status).toBe(200);
  });

  it("says so in its record", async () => {
    const { handler } = await relabelled();
    const call = callOf("POST", PODS, pod);
    await expect(async () => handler(call)).rejects.toThrow("lock");
    expect(call.record).toMatchObject({ decision: "fenced", reason: "lock-changed" });
  });

  it("reads, asks for reviews, and writes Events and its other leases, which are no acts of a leader", async () => {
    const { send } = await relabelled();
    for (const [method, target] of [
      ["GET", `${PODS}?watch=1`],
      ["POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"],
      ["POST", "/apis/authentication.k8s.io/v1/tokenreviews"],
      ["POST", "/api/v1/namespaces/shop/events"],
      ["PATCH", "/apis/events.k8s.io/v1/namespaces/shop/events/e"],
      ["PUT", `${LEASES}/another-elector`],
      ["POST", "/anything"],
    ] as const) {
      expect((await send(method, target, method === "GET" ? undefined : pod)).status, `${method} ${target}`).toBe(200);
    }
  });

  it("writes again as soon as it holds the new lock", async () => {
    const { refusal, renew, send } = await relabelled({ blueIsFree: true });
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await renew();
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("writes again once the lease of the one before is over, whoever leads now", async () => {
    const { refusal, send, clock } = await relabelled({ seconds: 40 });
    await clock.advance(39_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await clock.advance(1);
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("waits for client-go's default lease where nothing was seen of the one before, as after a restart of the proxy", async () => {
    const { enforcer, refusal, send, clock } = setupElection({ subset: "" });
    enforcer.enforce(routes(2, { blue: ["team"] }));
    await clock.advance(14_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await clock.advance(1);
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("is not let go by a second change", async () => {
    const { enforcer, refusal, clock } = await relabelled({ seconds: 40 });
    await clock.advance(10_000);
    enforcer.enforce(routes(3, {}, { subset: "green" }));
    await clock.advance(29_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
  });

  it("is also one whose app has got or lost the lock's name, if that changes the name upstream", async () => {
    const named = setupElection({ lockName: "" });
    named.enforcer.enforce(routes(2, { blue: ["team"] }));
    expect((await named.refusal("POST", PODS, pod)).code).toBe(503);
    named.enforcer.enforce(routes(3, { blue: ["team"] }, { lockName: "" }));
    expect((await named.refusal("POST", PODS, pod)).code).toBe(503);
  });
});

it("a change that leaves the lock its name holds up nothing, nor do the first routes", async () => {
  const { enforcer, send } = setupElection();
  expect((await send("POST", PODS, pod)).status).toBe(200);
  enforcer.enforce(routes(2, { blue: ["other"] }));
  expect((await send("POST", PODS, pod)).status).toBe(200);
  const none = setupElection({ lockName: "" });
  none.enforcer.enforce(routes(2, {}, { lockName: "", subset: "green" }));
  expect((await none.send("POST", PODS, pod)).status).toBe(200);
  const rest = setupElection({ lockName: "", subset: "" });
  rest.enforcer.enforce(routes(2, {}, { subset: "" }));
  expect((await rest.send("POST", PODS, pod)).status).toBe(200);
});

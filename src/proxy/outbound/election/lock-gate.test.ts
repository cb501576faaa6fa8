import { describe, expect, it } from "vitest";
import { CONFIGMAPS, echo, jsonBody, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { callOf, jsonReply } from "../../../../test/support/layer-call.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { createStatus } from "../../../kube/status.ts";

const PODS = "/api/v1/namespaces/team/pods";
const pod = jsonBody({ metadata: { name: "x" } });

// A leader of the default subset that comes into "blue", where another pod may hold the lock.
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

describe("a pod with a renamed lock, while its operator may still believe that it leads", () => {
  it("gets 503 for every write, with the reason and Retry-After", async () => {
    const { refusal, renew, send, upstream } = await relabelled();
    await renew(); // of the new lock, which another pod holds
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

  it("has the refusal in its record", async () => {
    const { handler } = await relabelled();
    const call = callOf("POST", PODS, pod);
    await expect(async () => handler(call)).rejects.toThrow("lock");
    expect(call.record).toMatchObject({ decision: "fenced", reason: "lock-changed" });
  });

  it("may read, ask for reviews, and write Events and other leases, since not only leaders do that", async () => {
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

  it("may write as soon as it holds the new lock", async () => {
    const { refusal, renew, send } = await relabelled({ blueIsFree: true });
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await renew();
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("may write when the lease of the old lock is over, even if another pod leads", async () => {
    const { refusal, send, clock } = await relabelled({ seconds: 40 });
    await clock.advance(39_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await clock.advance(1);
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("waits for client-go's default lease if the proxy never saw the old lock, as after its restart", async () => {
    const { enforcer, refusal, send, clock } = setupElection({ subset: "" });
    enforcer.enforce(routes(2, { blue: ["team"] }));
    await clock.advance(14_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
    await clock.advance(1);
    expect((await send("POST", PODS, pod)).status).toBe(200);
  });

  it("waits for the later end after a second change", async () => {
    const { enforcer, refusal, clock } = await relabelled({ seconds: 40 });
    await clock.advance(10_000);
    enforcer.enforce(routes(3, {}, { subset: "green" }));
    await clock.advance(29_999);
    expect((await refusal("POST", PODS, pod)).code).toBe(503);
  });

  it("is also one of an app that got or lost the lock's name, if the name upstream changes by that", async () => {
    const named = setupElection({ lockName: "" });
    named.enforcer.enforce(routes(2, { blue: ["team"] }));
    expect((await named.refusal("POST", PODS, pod)).code).toBe(503);
    named.enforcer.enforce(routes(3, { blue: ["team"] }, { lockName: "" }));
    expect((await named.refusal("POST", PODS, pod)).code).toBe(503);
  });
});

it("a change that keeps the lock's name refuses no write, and neither do the first routes", async () => {
  const { enforcer, send } = setupElection();
  expect((await send("POST", PODS, pod)).status).toBe(200);
  enforcer.enforce(routes(2, { blue: ["other"] }));
  expect((await send("POST", PODS, pod)).status).toBe(200);
  const none = setupElection({ lockName: "" });
  none.enforcer.enforce(routes(2, {}, { lockName: "", subset: "green" }));
  expect((await none.send("POST", PODS, pod)).status).toBe(200);
  const defaultSubset = setupElection({ lockName: "", subset: "" });
  defaultSubset.enforcer.enforce(routes(2, {}, { subset: "" }));
  expect((await defaultSubset.send("POST", PODS, pod)).status).toBe(200);
});

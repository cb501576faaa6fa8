import { describe, expect, it } from "vitest";
import { CONFIGMAPS, ENDPOINTS, jsonBody, LEASES, lease, setupElection } from "../../../../test/support/election-setup.ts";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { encodeStatus } from "../../../kube/codec/codec.ts";
import type { ResourceInfo } from "../../../kube/request-info.ts";
import { createStatus } from "../../../kube/status.ts";
import type { Call } from "../../call/call.ts";

const RULE = "leases.coordination.k8s.io";
const USER = 'User "operator" cannot use the lock';
const forbidden = (why = USER) => createStatus("Forbidden", `leases "shop-lock---blue" is forbidden: ${why}`);

type Rbac = (info: ResourceInfo) => boolean;
const pinned: Rbac = ({ verb, name }) => verb === "create" || name === "shop-lock";

// An API server whose RBAC is `allows`.
function setup(allows: Rbac = () => true, more: Parameters<typeof setupElection>[0] = {}) {
  const state = { allows, exists: true, why: USER, status: 403 };
  const answer = ({ info }: Call) => {
    if (info.kind !== "resource" || !state.allows(info)) return jsonReply(forbidden(state.why), state.status);
    if (info.verb === "create") return jsonReply(lease("shop-lock---blue"), state.exists ? 409 : 201);
    return state.exists ? jsonReply(lease(info.name)) : jsonReply(createStatus("NotFound", "no"), 404);
  };
  const election = setupElection(more, answer);
  const get = (root = LEASES) => election.send("GET", `${root}/shop-lock`);
  const create = () => election.send("POST", LEASES, jsonBody(lease("shop-lock")));
  const put = () => election.send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock")));
  const patch = () => election.send("PATCH", `${LEASES}/shop-lock`, jsonBody({ spec: {} }));
  const reported = () => election.reports.map((access) => access?.deniedVerbs.join() ?? "unknown");
  return { ...election, state, get, create, put, patch, reported };
}

describe("the report about a renamed lock", () => {
  it("is that the operator may use the lock, once, as soon as the API server answers with the lock", async () => {
    const { get, put, reports } = setup();
    await get();
    await put();
    expect(reports).toEqual([{ lockName: "shop-lock---blue", resource: RULE, deniedVerbs: [], reason: "" }]);
  });

  it("has the denied verb and the authorizer's reason, once", async () => {
    const { put, reports } = setup(({ verb }) => verb !== "update");
    await put();
    await put();
    expect(reports).toEqual([{ lockName: "shop-lock---blue", resource: RULE, deniedVerbs: ["update"], reason: USER }]);
  });

  it("names update together with get: an elector that may not get the lock never comes to update it", async () => {
    const { get, create, reported } = setup(pinned);
    await get();
    await create();
    expect(reported()).toEqual(["get,update"]);
  });

  it("names the verbs that the operator uses", async () => {
    const { get, create, patch, send, reported } = setup(() => false);
    await patch();
    await get();
    await create();
    await send("GET", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock`);
    expect(reported()).toEqual(["patch", "get,patch", "get,create,patch", "get,create,patch,list"]);
  });

  it("is read from protobuf too", async () => {
    const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
    const { send, reports } = setupElection({}, () => ({ status: 403, headers, body: encodeStatus("protobuf", forbidden()) }));
    await send("GET", `${LEASES}/shop-lock`);
    expect(reports).toMatchObject([{ deniedVerbs: ["get", "update"], reason: USER }]);
  });

  it("has a reason that is short and in one line, since it goes into a condition", async () => {
    const { get, reports, state } = setup(() => false);
    state.why = `User "x"\n\u001b[31m\u2028${"r".repeat(60_000)}`;
    await get();
    expect(reports.at(-1)?.reason).toMatch(/^User "x" +\[31m +r+…$/);
    expect(reports.at(-1)?.reason).toHaveLength(256);
  });

  it("leaves a denied create out once the lock is there", async () => {
    const { get, create, reported, state } = setup(({ verb }) => verb !== "create");
    state.exists = false;
    await get();
    await create();
    expect(reported()).toEqual(["create"]);
    state.exists = true;
    await get();
    expect(reported()).toEqual(["create", ""]);
  });

  it("forgets a denied get as soon as the lock is renewed: a leader that has the lock does not get it again", async () => {
    const { get, put, reported, state } = setup(() => false);
    await get();
    state.allows = () => true;
    await put();
    expect(reported()).toEqual(["get,update", ""]);
  });

  it("says nothing while the lock is not there and no verb is denied", async () => {
    const { get, reports, state } = setup();
    state.exists = false;
    await get();
    expect(reports).toEqual([]);
  });

  it("is about the denied one of two locks that the operator uses at once", async () => {
    const { get, reports } = setup(({ resource }) => resource !== "endpoints");
    await get(CONFIGMAPS);
    await get(ENDPOINTS);
    await get(CONFIGMAPS);
    expect(reports.map((access) => [access?.resource, access?.deniedVerbs.join()])).toEqual([
      ["configmaps", ""],
      ["endpoints", "get,update"],
    ]);
  });

  it("is not made of a refusal that is not the authorizer's: a namespace that ends, a quota, an outage", async () => {
    const { get, put, reported, state } = setup();
    await get();
    state.allows = () => false;
    for (const why of ["unable to create new content in namespace shop because it is being terminated", "exceeded quota: q"]) {
      state.why = why;
      await put();
    }
    for (const status of [401, 429, 500, 503]) {
      state.status = status;
      await put();
    }
    expect(reported()).toEqual([""]);
  });

  it("is not made of a deletecollection, which no elector needs", async () => {
    const { send, reports } = setup(() => false);
    await send("DELETE", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock`);
    expect(reports).toEqual([]);
  });

  it("is never made in the default subset, whose lock keeps its name", async () => {
    const { get, reports } = setup(() => false, { subset: "" });
    await get();
    expect(reports).toEqual([]);
  });

  it("ends when the pod comes into another subset, and begins anew", async () => {
    const { get, reports, enforcer } = setup(pinned);
    await get();
    enforcer.enforce(routes(2, {}, { subset: "green" }));
    expect(reports.at(-1)).toBeNull();
    await get();
    expect(reports.at(-1)).toMatchObject({ lockName: "shop-lock---green" });
  });
});

describe("a mended Role", () => {
  it("is noticed by the first request that passes", async () => {
    const { get, create, put, reported, state } = setup(pinned);
    state.exists = false;
    await get();
    state.allows = () => true;
    await get();
    await create();
    state.exists = true;
    await put();
    expect(reported()).toEqual(["get,update", "unknown", ""]);
  });

  it("that still lacks a verb is reported with that verb", async () => {
    const { get, put, reported, state } = setup(() => false);
    await get();
    await put();
    state.allows = ({ verb }) => verb === "get";
    await get();
    expect(reported()).toEqual(["get,update", "update"]);
  });

  it("that is taken away again is noticed too", async () => {
    const { put, reported, state } = setup();
    await put();
    state.allows = () => false;
    await put();
    expect(reported()).toEqual(["", "update"]);
  });
});

import { describe, expect, it } from "vitest";
import {
  CONFIGMAPS,
  type Denies,
  ENDPOINTS,
  jsonBody,
  LEASES,
  lease,
  setupElection,
} from "../../../../test/support/election-setup.ts";
import { jsonReply } from "../../../../test/support/layer-call.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { createStatus } from "../../../kube/status.ts";

const RULE = "leases.coordination.k8s.io";
const pinned: Denies = ({ name, verb }) => verb !== "create" && name !== "shop-lock";

// An API server whose RBAC is what the reviews say: a lock that may not be used is answered 403.
function setup(denies: Denies = () => false, more: Parameters<typeof setupElection>[0] = {}) {
  const election = setupElection(more, (call) => {
    const verb = call.info.kind === "resource" ? call.info.verb : "";
    const name = call.info.kind === "resource" && verb !== "create" ? call.info.name : "";
    const denied = state.denies({ namespace: "shop", verb, group: "", resource: "", ...(name === "" ? {} : { name }) });
    if (denied !== false && state.enforced) return jsonReply(createStatus("Forbidden", "no"), 403);
    return state.exists || verb === "create" ? jsonReply(lease(name)) : jsonReply(createStatus("NotFound", "no"), 404);
  });
  const state = { denies, exists: true, enforced: true };
  election.reviewer.denies = (attributes) => state.denies(attributes);
  const get = (more: Record<string, string> = {}) => election.send("GET", `${LEASES}/shop-lock`, { headers: more });
  const put = () => election.send("PUT", `${LEASES}/shop-lock`, jsonBody(lease("shop-lock")));
  const settle = () => election.clock.flush();
  return { ...election, state, get, put, settle };
}

describe("what is asked", () => {
  it("is what an elector needs, of the name upstream, and of a create without a name, which its path does not have", async () => {
    const { get, asked, settle, reviews } = setup();
    await get();
    await settle();
    const place = { namespace: "shop", group: "coordination.k8s.io", version: "v1", resource: "leases" };
    expect(asked()).toEqual([
      { ...place, verb: "get", name: "shop-lock---blue" },
      { ...place, verb: "create" },
      { ...place, verb: "update", name: "shop-lock---blue" },
    ]);
    expect(reviews).toEqual([{ lockName: "shop-lock---blue", resource: RULE, deniedVerbs: [], reason: "" }]);
  });

  it("is asked as the caller, with nothing else of its request", async () => {
    const { get, reviewer, settle } = setup();
    await get({ authorization: "Bearer t", "impersonate-user": "u", cookie: "c", accept: "x/y", "user-agent": "op/1" });
    await settle();
    const [call] = reviewer.calls;
    expect([call?.method, call?.target]).toEqual(["POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"]);
    expect(call?.headers).toEqual({
      authorization: "Bearer t",
      "impersonate-user": "u",
      "user-agent": "op/1",
      "content-type": "application/json",
      accept: "application/json",
    });
    expect(call?.record.lock).toBe(true);
  });

  it("is asked once, though many requests come at once, and not again while it is allowed", async () => {
    const { get, put, asked, settle, clock } = setup();
    await Promise.all([get(), get(), put()]);
    await settle();
    await clock.advance(3_600_000);
    await get();
    await settle();
    expect(asked()).toHaveLength(3);
  });

  it("is nothing in the default subset, whose lock keeps its name", async () => {
    const { get, asked, settle } = setup(undefined, { subset: "" });
    await get();
    await settle();
    expect(asked()).toEqual([]);
  });

  it("follows what the operator uses: patch in place of update, or beside it", async () => {
    const { send, put, asked, settle, clock } = setup();
    const patch = () => send("PATCH", `${LEASES}/shop-lock`, jsonBody({ spec: {} }));
    await patch();
    await settle();
    expect(asked().map(({ verb }) => verb)).toEqual(["get", "create", "patch"]);
    await clock.advance(2_000);
    await put();
    await settle();
    expect(
      asked()
        .slice(3)
        .map(({ verb }) => verb),
    ).toEqual(["get", "create", "update", "patch"]);
  });

  it("covers a lock that is found by a field selector", async () => {
    const { send, asked, settle } = setup();
    await send("GET", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock`).catch(() => undefined);
    await settle();
    expect(asked()).toContainEqual(expect.objectContaining({ verb: "list", name: "shop-lock---blue" }));
  });
});

describe("what is told", () => {
  it("has the API server's reason, cut short and in one line, since it goes into a condition", async () => {
    const { send, reviews, reviewer, clock } = setupElection();
    reviewer.denies = () => true;
    reviewer.reason = `no\n\u001b[31m\u2028${"r".repeat(60_000)}`;
    await send("GET", `${LEASES}/shop-lock`);
    await clock.flush();
    expect(reviews.at(-1)?.reason).toMatch(/^no +\[31m +r+$/);
    expect(reviews.at(-1)?.reason).toHaveLength(256);
  });

  it("is which verbs are denied, once", async () => {
    const { get, reviews, settle } = setup(pinned);
    await get();
    await settle();
    await get();
    await settle();
    expect(reviews).toEqual([{ lockName: "shop-lock---blue", resource: RULE, deniedVerbs: ["get", "update"], reason: "" }]);
  });

  it("leaves a create out that is denied and not needed, since the lock is there", async () => {
    const { get, reviews, settle, state } = setup(({ verb }) => verb === "create");
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: [] });
    state.exists = false;
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: ["create"] });
  });

  it("waits for nothing: a review that is never answered holds up no request", async () => {
    const { reviewer, reviews, get, put, send, asked, settle, clock } = setup();
    reviewer.denies = () => new Promise(() => undefined);
    expect((await get()).status).toBe(200);
    expect((await put()).status).toBe(200);
    await clock.advance(5_000);
    await send("PATCH", `${LEASES}/shop-lock`, jsonBody({ spec: {} })); // asks for more, when its time has come
    expect([reviews, asked().length]).toEqual([[], 1]);
    reviewer.denies = () => "unanswered";
    await clock.advance(5_000); // it is given up
    await put();
    await settle();
    expect([reviews, asked().length]).toEqual([[], 2]);
  });

  it("is nothing before the lock itself is answered, which says whether it has to be created", async () => {
    const answer = Promise.withResolvers<ReturnType<typeof jsonReply>>();
    const { send, reviews, reviewer, clock, asked } = setupElection({}, () => answer.promise);
    reviewer.denies = ({ verb }) => verb === "create";
    const reply = send("GET", `${LEASES}/shop-lock`);
    await clock.flush();
    expect([asked().length, reviews]).toEqual([3, []]);
    answer.resolve(jsonReply(lease("shop-lock---blue")));
    await reply;
    expect(reviews).toMatchObject([{ deniedVerbs: [] }]);
  });

  it("is nothing while the API server answers no reviews, unless it refuses the lock itself", async () => {
    const { get, reviews, reviewer, settle, state } = setup();
    reviewer.denies = () => "unanswered";
    await get();
    await settle();
    expect(reviews).toEqual([]);
    state.denies = () => true;
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: ["get"] });
    state.denies = () => false;
    await get();
    expect(reviews.at(-1)).toBeNull();
  });

  it("is of two locks that are used at once the denied one", async () => {
    const denies: Denies = ({ resource }) => resource === "endpoints";
    const { send, reviews, settle, state } = setup(denies);
    state.enforced = false;
    await send("GET", `${CONFIGMAPS}/shop-lock`);
    await settle();
    await send("GET", `${ENDPOINTS}/shop-lock`);
    await settle();
    expect(reviews.map((review) => [review?.resource, review?.deniedVerbs.join()])).toEqual([
      ["configmaps", ""],
      ["endpoints", "get,update"],
    ]);
  });

  it("is not a refusal for another reason, such as a namespace that ends", async () => {
    const { get, put, reviews, settle, state, clock, asked } = setup();
    await get();
    await settle();
    state.denies = () => true;
    state.enforced = true;
    const allowed = asked().length;
    await put();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: [] });
    state.denies = () => false; // the review's answer stays what it was: allowed
    await clock.advance(2_000);
    await get();
    await settle();
    expect([reviews.length, asked().length]).toEqual([1, allowed + 3]);
  });

  it("ends when the pod comes into another subset, and begins anew", async () => {
    const { get, reviews, settle, enforcer, asked } = setup(pinned);
    await get();
    await settle();
    enforcer.enforce(routes(2, {}, { subset: "green" }));
    expect(reviews.at(-1)).toBeNull();
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ lockName: "shop-lock---green" });
    expect(asked()).toHaveLength(6);
  });
});

describe("a mended Role", () => {
  it("is noticed by the first request that passes, and the rest asked again soon", async () => {
    const { get, put, reviews, settle, state, clock } = setup(pinned);
    await get();
    await settle();
    state.denies = () => false;
    await clock.advance(2_000);
    await get();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: ["update"] });
    await put();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: [] });
  });

  it("is noticed within a minute by the operator's own retries, though they fail at another verb", async () => {
    const { get, reviews, settle, state, clock } = setup(({ verb }) => verb === "update");
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: ["update"] });
    state.denies = () => false;
    for (let seconds = 0; seconds < 60; seconds += 2) {
      await clock.advance(2_000);
      await get();
      await settle();
    }
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: [] });
  });

  it("that is taken away again is noticed too", async () => {
    const { get, put, reviews, settle, state, clock } = setup();
    await put();
    await settle();
    state.denies = pinned;
    await put();
    await clock.advance(2_000);
    await get();
    await settle();
    expect(reviews.at(-1)).toMatchObject({ deniedVerbs: ["get", "update"] });
  });
});

it("a caller that goes away takes no review with it: others wait for the same answer", async () => {
  const { send, reviews, settle } = setup();
  const gone = new AbortController();
  const request = send("GET", `${LEASES}/shop-lock`, { signal: gone.signal });
  gone.abort();
  await request;
  await settle();
  expect(reviews).toHaveLength(1);
});

it("a deletecollection, which no elector needs, is nothing that the reviews do not explain", async () => {
  const { send, asked, settle, clock } = setup();
  for (let seconds = 0; seconds < 20; seconds += 2) {
    await send("DELETE", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock`).catch(() => undefined);
    await settle();
    await clock.advance(2_000);
  }
  expect(asked().length).toBeLessThanOrEqual(3);
});

it("a review whose answer never ends is given up after ten seconds, though nobody ends the request", async () => {
  const { send, reviews, reviewer, clock } = setupElection();
  reviewer.isDeaf = true;
  reviewer.denies = () => new Promise<never>(() => undefined);
  await send("GET", `${LEASES}/shop-lock`);
  await clock.advance(10_000);
  await clock.flush();
  reviewer.isDeaf = false;
  reviewer.denies = () => false;
  await clock.advance(60_000);
  await send("GET", `${LEASES}/shop-lock`);
  await clock.flush();
  expect(reviews.at(-1)).toMatchObject({ deniedVerbs: [] });
});

// The listener for the operator's webhooks, between pods with real TLS: who answers a review, in quiet times and while a namespace moves.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { limitRule } from "../../support/policies.ts";
import { type ReviewPod, type ReviewWorld, reviewOf, startReviewWorld } from "../../support/review-world.ts";
import { limit, subset, table } from "../../support/route-table.ts";

const RULES = [subset("canary")];
const quiet = table(RULES, { prod: [], pilot: [0] });

let world: ReviewWorld;
let stable: ReviewPod;
let canary: ReviewPod;
beforeAll(async () => {
  world = await startReviewWorld();
  stable = await world.addPod("stable", "");
  canary = await world.addPod("canary", "canary");
});
afterAll(() => world?.stop());
beforeEach(() => {
  world.tell();
  for (const pod of [stable, canary]) {
    pod.enforce(quiet);
    pod.serve(undefined);
    pod.answered.length = 0;
  }
});

const by = (name: string) => ({ status: 200, body: expect.stringContaining(`"by":"${name}"`) });

describe("a review", () => {
  it("of an own namespace is answered by the operator beside the proxy", async () => {
    expect(await world.call(stable, reviewOf("prod"))).toMatchObject(by("stable"));
    expect(await world.call(canary, reviewOf("pilot"))).toMatchObject(by("canary"));
  });

  it("of another subset's namespace is answered by a pod of that subset, once", async () => {
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(by("canary"));
    expect(await world.call(canary, reviewOf("prod"))).toMatchObject(by("stable"));
    expect([stable.answered, canary.answered]).toEqual([["POST /mutate?timeout=10s"], ["POST /mutate?timeout=10s"]]);
  });

  it("reaches the operator as it was sent, without the mesh's own headers", async () => {
    const headers = { "x-ctrlmesh-review-forwarded": "holder", "x-request": "7" };
    const review = reviewOf("pilot");
    const { body } = await world.call(stable, review, { headers });
    const seen = JSON.parse(body) as { bytes: number; headers: Record<string, string> };
    expect(seen).toMatchObject({ bytes: JSON.stringify(review).length, headers: { "x-request": "7" } });
    expect(Object.keys(seen.headers).filter((name) => name.startsWith("x-ctrlmesh"))).toEqual([]);
  });

  it("in chunks is refused, since API servers give the length", async () => {
    const answer = await world.call(stable, reviewOf("pilot"), { headers: { "transfer-encoding": "chunked" } });
    expect(answer).toMatchObject({ status: 411, body: expect.stringContaining("needs a Content-Length") });
  });

  it("is read if it is sent after 100 Continue", async () => {
    const review = reviewOf("pilot");
    const headers = { expect: "100-continue", "content-length": String(JSON.stringify(review).length) };
    const answer = await world.call(stable, review, { headers });
    expect(answer).toMatchObject(by("canary"));
    expect(JSON.parse(answer.body)).toMatchObject({ bytes: JSON.stringify(review).length });
  });

  it("may have an answer of many MiB, through both pods", async () => {
    const answer = "x".repeat(8 * 1024 * 1024);
    canary.serve((req, res) => void req.resume().on("end", () => res.end(answer)));
    expect((await world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=10s" })).body === answer).toBe(true);
  });

  it("needs no connection of its own to the peer or the operator", async () => {
    await world.call(stable, reviewOf("pilot"));
    const opened: unknown[] = [];
    const onConnected = (message: unknown) => opened.push(message);
    subscribe("undici:client:connected", onConnected);
    for (let round = 0; round < 20; round++) expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(by("canary"));
    unsubscribe("undici:client:connected", onConnected);
    expect(opened).toEqual([]);
  });

  it("outside of a global limit is allowed, with the uid and the kind of the request", async () => {
    stable.enforce(table([limit()], { prod: [0], other: [] }));
    const { status, body } = await world.call(stable, reviewOf("other"));
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: "review-of-other", allowed: true },
    });
  });

  it("of an unknown namespace waits for its owner", async () => {
    const answer = world.call(stable, reviewOf("new"));
    setTimeout(() => stable.enforce(table(RULES, { new: [] })), 50);
    expect(await answer).toMatchObject(by("stable"));
    const late = await world.call(stable, reviewOf("never"), { path: "/mutate?timeout=300ms" });
    expect(late).toMatchObject({ status: 503, headers: { "x-ctrlmesh-error": "REVIEW_LATE" } });
    expect(JSON.parse(late.body).message).toContain('the owner of "never" is not known yet');
  });
});

describe("while a namespace moves", () => {
  const before = quiet;
  const after = table(RULES, { prod: [0], pilot: [0] });
  const fenced = table(RULES, { prod: [0], pilot: [0] }, { fenced: ["prod"] });

  it("its old owner answers until the grant, then the new one, whoever gets the call", async () => {
    stable.enforce(after);
    canary.enforce(fenced);
    for (const pod of [stable, canary]) expect(await world.call(pod, reviewOf("prod"))).toMatchObject(by("stable"));
    canary.enforce(after);
    for (const pod of [stable, canary]) expect(await world.call(pod, reviewOf("prod"))).toMatchObject(by("canary"));
  });

  it("a pod whose routes are one version behind sends it to the right one", async () => {
    // canary has been granted what stable still believes to own
    canary.enforce(fenced);
    canary.enforce(after);
    const other = await world.addPod("late", "late");
    other.enforce(before);
    stable.enforce(after);
    world.tell();
    expect(await world.call(other, reviewOf("prod"))).toMatchObject(by("canary"));
  });

  it.each([
    ["knows the move", after],
    ["does not know of the move", before],
  ])("a pod of a third subset that %s finds the old owner until the grant", async (_, routes) => {
    const third = await world.addPod("third", "third", "::1");
    world.tell();
    third.enforce(routes);
    stable.enforce(after);
    canary.enforce(fenced);
    expect(await world.call(third, reviewOf("prod"))).toMatchObject(by("stable"));
    canary.enforce(after);
    expect(await world.call(third, reviewOf("prod"))).toMatchObject(by("canary"));
    await third.stop();
  });

  it("the old owner answers by any of its pods, if the operator of one is down", async () => {
    const second = await world.addPod("second", "");
    world.tell();
    stable.enforce(after);
    second.enforce(after);
    canary.enforce(fenced);
    await second.stopOperator();
    for (const pod of [second, canary]) expect(await world.call(pod, reviewOf("prod"))).toMatchObject(by("stable"));
    await second.stop();
  });

  it("pods that do not agree make no loop, and the caller gets an answer in time", async () => {
    stable.enforce(after); // believes canary
    canary.enforce(before); // believes stable
    const started = Date.now();
    const answer = await world.call(stable, reviewOf("prod"), { path: "/mutate?timeout=3s" });
    expect(answer).toMatchObject({ status: 503, headers: { "x-ctrlmesh-error": "REVIEW_LATE" } });
    expect(Date.now() - started).toBeLessThan(3_000);
    expect([stable.answered, canary.answered]).toEqual([[], []]);
  });

  it("an answer comes as soon as they agree", async () => {
    stable.enforce(after);
    canary.enforce(before);
    const answer = world.call(stable, reviewOf("prod"));
    setTimeout(() => canary.enforce(after), 150);
    expect(await answer).toMatchObject(by("canary"));
  });

  it("a new owner that started during the move waits for the grant", async () => {
    const fresh = await world.addPod("fresh", "fresh");
    const rules = [subset("fresh")];
    fresh.enforce(table(rules, { prod: [0] }, { fenced: ["prod"] }));
    const answer = world.call(fresh, reviewOf("prod"));
    setTimeout(() => fresh.enforce(table(rules, { prod: [0] })), 150);
    expect(await answer).toMatchObject(by("fresh"));
  });
});

it("a policy refuses the reviews that it names, and a forwarded one is judged once", async () => {
  const admissions = [{ apiGroups: ["apps"], apiVersions: ["*"], operations: ["CREATE"], resources: ["*"], scope: "*" as const }];
  const rule = limitRule({ kind: "deny" }, { name: "guard", match: { resources: [], urls: [], http: [], admissions } });
  stable.limit(rule);
  const answer = await world.call(stable, reviewOf("pilot"));
  expect(answer).toMatchObject({ status: 503, headers: { "x-ctrlmesh-error": "BREAKER_OPEN" } });
  expect(answer.body).toMatch(/ctrlmesh: refused by .*guard/);
  expect(await world.call(stable, reviewOf("pilot", { operation: "DELETE" }))).toMatchObject(by("canary"));
  stable.limit();
  canary.limit(rule);
  expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(by("canary"));
  canary.limit();
});

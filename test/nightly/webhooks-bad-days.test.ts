// The listener for the operator's webhooks when something is wrong: dead and silent pods, certificates, bodies that are no reviews.
import { createServer as createTcpServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ReviewPod, type ReviewWorld, reviewOf, startReviewWorld } from "../support/review-world.ts";
import { group, sharded, subset, table } from "../support/route-table.ts";

const ROUTES = table([subset("canary")], { prod: [], pilot: [0] });

let world: ReviewWorld;
let stable: ReviewPod;
let canary: ReviewPod;
beforeEach(async () => {
  world = await startReviewWorld();
  stable = await world.addPod("stable", "");
  canary = await world.addPod("canary", "canary");
  world.tell();
  for (const pod of [stable, canary]) pod.enforce(ROUTES);
});
afterEach(() => world?.stop());

const by = (name: string) => ({ status: 200, body: expect.stringContaining(`"by":"${name}"`) });
const refused = (status: number, code: string) => ({ status, headers: { "x-ctrlmesh-error": code } });
const CONVERSION = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request: { uid: "c" } };

describe("what is no review", () => {
  it.each([
    ["a conversion", "POST", CONVERSION, "/convert?timeout=2s"],
    ["a GET", "GET", undefined, "/readyz"],
    ["an unknown version", "POST", { ...reviewOf("pilot"), apiVersion: "admission.k8s.io/v9" }, "/mutate?timeout=2s"],
    ["no JSON", "POST", "{", "/mutate"],
  ])("%s goes to the operator beside the proxy as it is", async (_, method, body, path) => {
    expect(await world.call(stable, body, { method, path })).toMatchObject(by("stable"));
    expect(canary.answered).toEqual([]);
  });

  it("a body above the size of any review passes as a stream", async () => {
    const body = JSON.stringify({ ...CONVERSION, pad: "x".repeat(9 * 1024 * 1024) });
    const answer = await world.call(stable, body, { path: "/convert" });
    expect(JSON.parse(answer.body)).toMatchObject({ by: "stable", bytes: body.length });
  });

  it("reviews of one address above its share are turned away for a second, and those of others pass", async () => {
    const review = reviewOf("prod", { object: { pad: "x".repeat(6 * 1024 * 1024) } });
    const held = Promise.withResolvers<void>();
    stable.serve((req, res) => void held.promise.then(() => req.resume().on("end", () => res.end("{}"))));
    // Two: the pace of an address lets no more of these arrive at once.
    const calls = Array.from({ length: 2 }, () => world.call(stable, review, { path: "/mutate?timeout=20s" }));
    const first = await Promise.race(calls);
    expect(first).toMatchObject({ status: 503, headers: { "x-ctrlmesh-error": "BUSY", "retry-after": "1" } });
    const pad = "x".repeat(1024 * 1024);
    const others = await world.call(stable, reviewOf("pilot", { object: { pad } }), { tls: { localAddress: "127.0.0.77" } });
    expect(others).toMatchObject(by("canary"));
    held.resolve();
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(await world.call(stable, review)).toMatchObject({ status: 200 });
  });

  it.each([
    ["of nested lists", `{"a":${"[".repeat(9_000)}${"]".repeat(9_000)},"b":[${"[],".repeat(2_300_000)}[]]}`],
    ["of names", `{"spec":{${Array.from({ length: 400_000 }, (_, at) => `"k${at}":{}`).join()}}}`],
  ])("a review of 7 MiB %s is answered without becoming an object", async (_, object) => {
    const text = JSON.stringify(reviewOf("pilot", { object: "OBJECT" })).replace('"OBJECT"', () => object);
    canary.serve((req, res) => void req.resume().on("end", () => res.end(`{"by":"canary"}`)));
    const before = process.memoryUsage().heapUsed;
    expect(await world.call(stable, text, { path: "/mutate?timeout=20s" })).toMatchObject(by("canary"));
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(60_000_000);
  });

  it.each([
    ["a name of a megabyte", { name: "n".repeat(1024 * 1024) }],
    ["a uid of a megabyte", { uid: "u".repeat(1024 * 1024) }],
    [
      "100,000 labels",
      { object: { metadata: { labels: Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`l${at}`, ""])) } } },
    ],
  ])("%s is refused", async (_, request) => {
    expect(await world.call(stable, reviewOf("prod", request))).toMatchObject(refused(400, "BAD_REQUEST"));
    expect(stable.answered).toEqual([]);
  });
});

describe("without the owner's pods", () => {
  it("that have the listener, any pod answers, as before the pods were restarted for the webhooks", async () => {
    world.tell([stable.peer, { ...canary.peer, isDirect: true }]);
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject({ status: 200 });
    world.tell([stable.peer, { ...canary.peer, isDirect: true, isReady: false }]);
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(refused(503, "NO_PEER"));
  });

  it("the failurePolicy decides, and the answer says why", async () => {
    world.tell([stable.peer]);
    const answer = await world.call(stable, reviewOf("pilot"));
    expect(answer).toMatchObject(refused(503, "NO_PEER"));
    const message = 'ctrlmesh: subset "canary" has no pod';
    // The API server shows the message of a Status, and of nothing else.
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "ServiceUnavailable", code: 503, message };
    expect(JSON.parse(answer.body)).toMatchObject(status);
  });

  it("a pod that has just become ready is found", async () => {
    world.tell([{ ...canary.peer, isReady: false }, stable.peer]);
    const answer = world.call(stable, reviewOf("pilot"));
    setTimeout(() => world.tell(), 200);
    expect(await answer).toMatchObject(by("canary"));
  });

  it("another ready pod answers for a dead one", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    world.tell();
    await canary.webhooks.server.stop();
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.call(stable, reviewOf("pilot"))));
    for (const answer of answers) expect(answer).toMatchObject(by("second"));
  });

  it("all dead: an error soon, not at the end of the caller's time, and it says why", async () => {
    await canary.webhooks.server.stop();
    const answer = await world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=30s" });
    expect(answer).toMatchObject(refused(503, "PEER_UNREACHABLE"));
    expect(answer.body).toMatch(/pod canary of subset \\"canary\\" cannot be reached: connect ECONNREFUSED/);
  });

  it("the pod that replaces a dead one is found, though the list names the dead one for a moment longer", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    world.tell([stable.peer, canary.peer]);
    await canary.webhooks.server.stop();
    const answer = world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=30s" });
    setTimeout(() => world.tell([stable.peer, second.peer]), 200);
    expect(await answer).toMatchObject(by("second"));
  });

  it("a silent pod costs the caller's time and no more, and nothing is sent twice", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    world.tell();
    // The first calls of a process are slow: they open connections and compile code.
    for (let call = 0; call < 8; call++) expect((await world.call(stable, reviewOf("pilot"))).status).toBe(200);
    for (const pod of [canary, second]) {
      pod.answered.length = 0;
      pod.serve((req) => void pod.answered.push(req.url ?? ""));
    }
    const started = performance.now();
    const times = await Promise.all(
      [0, 1, 2].map(async () => {
        const answer = await world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=1s" });
        expect(answer).toMatchObject(refused(503, "REVIEW_LATE"));
        return performance.now() - started;
      }),
    );
    expect([...canary.answered, ...second.answered]).toHaveLength(times.length);
    // The call's own second counts, not the 10 s of a call without `timeout`. choose-peer.test.ts checks the exact margin; a busy machine exceeds it.
    expect(Math.min(...times)).toBeLessThan(9_800);
  });

  it("a gap of a sharded family has nobody", async () => {
    stable.enforce(table([sharded(group("apps")), subset("a")], { prod: [1], gap: [] }));
    expect(await world.call(stable, reviewOf("gap"))).toMatchObject(refused(503, "NO_OWNER"));
  });
});

describe("an operator that is down", () => {
  it("another pod of its subset answers, also a forwarded review", async () => {
    const second = await world.addPod("second", "canary");
    second.enforce(ROUTES);
    world.tell();
    await canary.stopOperator();
    for (let round = 0; round < 5; round++) {
      expect(await world.call(canary, reviewOf("pilot"))).toMatchObject(by("second"));
      expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(by("second"));
    }
  });

  it("without another pod the answer names its port", async () => {
    await stable.stopOperator();
    const older = { ...stable.peer, name: "older", uid: "older", isDirect: true } as const; // cannot be forwarded to
    world.tell([stable.peer, older, { ...canary.peer, isDirect: true }]);
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject(refused(503, "OPERATOR_UNREACHABLE"));
    const answer = await world.call(stable, reviewOf("prod"));
    expect(answer).toMatchObject(refused(503, "OPERATOR_UNREACHABLE"));
    expect(answer.body).toMatch(/the operator's webhook server at port \d+ cannot be reached: connect ECONNREFUSED/);
  });

  it("its errors pass as they are", async () => {
    canary.serve((_, res) => void res.writeHead(418).end("teapot"));
    expect(await world.call(stable, reviewOf("pilot"))).toMatchObject({ status: 418, body: "teapot" });
  });
});

it("a port of a pod that accepts and never speaks is left after a second", async () => {
  const silent = createTcpServer();
  await new Promise<void>((resolve) => silent.listen(world.port, "127.0.0.9", resolve));
  world.tell([stable.peer, canary.peer, { ...canary.peer, uid: "silent", address: "127.0.0.9" }]);
  for (let round = 0; round < 4; round++)
    expect(await world.call(stable, reviewOf("pilot"), { path: "/mutate?timeout=5s" })).toMatchObject(by("canary"));
  silent.close();
});

describe("the operator's certificate", () => {
  it("is followed when it rotates, without a failed call", async () => {
    let calls = 0;
    const stop = { is: false };
    const failures: unknown[] = [];
    const load = Array.from({ length: 4 }, async (_, at) => {
      while (!stop.is) {
        const review = reviewOf(at % 2 === 0 ? "prod" : "pilot");
        // Each call is a handshake, of which an address has a pace.
        const tls = { localAddress: `127.0.0.${80 + at}` };
        const answer = await world.call(stable, review, { tls }).catch((error: unknown) => ({ error }));
        if (!("status" in answer) || answer.status !== 200) failures.push(answer);
        calls++;
      }
    });
    for (let round = 0; round < 2; round++) {
      await Promise.all([stable.rotate(), canary.rotate()]);
      await new Promise((resolve) => setTimeout(resolve, 2_500));
    }
    stop.is = true;
    await Promise.all(load);
    expect(failures).toEqual([]);
    expect(calls).toBeGreaterThan(100);
  });
});

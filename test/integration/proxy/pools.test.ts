// Locks, lists, gets and watches have connections of their own, so a slow request of one kind delays no other kind.
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson } from "../../support/fake-api.ts";
import { type FakeHttp2Api, startFakeHttp2Api } from "../../support/fake-http2-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/ops/leases/operator";
const PODS = "/api/v1/pods";

let api: FakeHttp2Api;
let proxy: ProxyHarness;
const slow: ServerResponse[] = [];

// Lists hang until the test answers them. Watches stay open. Every other request is answered at once.
function script(req: IncomingMessage, res: ServerResponse): void {
  const [path] = (req.url ?? "").split("?");
  if (req.url?.includes("watch=1")) res.writeHead(200, { "content-type": "application/json" }).write("event\n");
  else if (path === PODS) slow.push(res);
  else answerJson(res, 200, { path });
}

/** Marks the lock's calls as the election layer does. */
const election: Layer = (next) => (call) => {
  if (call.target.startsWith(LEASE)) call.record.lock = true;
  return next(call);
};

beforeEach(async () => {
  api = await startFakeHttp2Api({ script });
  proxy = await startProxy({ api, election });
  slow.length = 0;
});

afterEach(async () => {
  await proxy.stop();
  await api.close();
});

async function gauge(name: string, pool: string): Promise<number> {
  const metric = await proxy.registry.getSingleMetric(`ctrlmesh_proxy_upstream_${name}`)?.get();
  return metric?.values.find(({ labels }) => labels.pool === pool)?.value ?? Number.NaN;
}

async function timed(path: string, method = "GET"): Promise<number> {
  const started = performance.now();
  expect((await proxy.fetch(path, { method })).status).toBe(200);
  return performance.now() - started;
}

it("300 slow lists delay neither the renewal of a lease, nor a get, nor a watch", async () => {
  await timed(LEASE);
  const lists = Array.from({ length: 300 }, () => proxy.fetch(PODS));
  await eventually(() => slow.length >= 3);
  await eventually(async () => (await gauge("waiting_requests", "list")) > 250);
  const renewals: number[] = [];
  for (let index = 0; index < 20; index++) renewals.push(await timed(LEASE, "PUT"));
  const gets = [await timed("/api/v1/namespaces/a/pods/b"), await timed("/api/v1/namespaces/a/pods/b")];
  // A request that waited behind the lists would never end here, since the test has not answered them. A busy machine may delay some, so the fastest counts.
  expect(Math.min(...renewals)).toBeLessThan(500);
  expect(Math.min(...gets)).toBeLessThan(500);
  const watch = await proxy.open(`${PODS}?watch=1`);
  expect(watch.statusCode).toBe(200);
  watch.destroy();
  // A list that has waited too long goes ahead. So the number of running lists grows, but never to all of them.
  await eventually(() => slow.length >= 6);
  expect(await gauge("connections", "list")).toBeLessThanOrEqual(16);
  expect(await gauge("connections", "lock")).toBe(1);
  api.script = (_req, res) => answerJson(res, 200, {});
  for (const res of slow) answerJson(res, 200, {});
  expect(new Set((await Promise.all(lists)).map(({ status }) => status))).toEqual(new Set([200]));
  expect(await gauge("waiting_requests", "list")).toBe(0);
}, 30_000);

it("an operator with fifty informers and a lock uses at most eight connections to the API server", async () => {
  api.script = (req, res) => {
    if (req.url?.includes("watch=1")) res.writeHead(200, { "content-type": "application/json" }).write("event\n");
    else answerJson(res, 200, { items: ["x".repeat(10_000)] });
  };
  let most = 0;
  const watches = await Promise.all(
    Array.from({ length: 50 }, async () => {
      await proxy.fetch(PODS);
      await timed(LEASE, "PUT");
      most = Math.max(most, api.open);
      return proxy.open(`${PODS}?watch=1`);
    }),
  );
  await timed("/api/v1/namespaces/a/pods/b");
  most = Math.max(most, api.open);
  expect(await gauge("connections", "watch")).toBe(1);
  expect(await gauge("connections", "list")).toBe(3); // exactly as many as may run at once
  // An operator does not renew its lock fifty times at once, as this test does.
  expect(most - (await gauge("connections", "lock"))).toBeLessThanOrEqual(7);
  for (const watch of watches) watch.destroy();
});

it("the request of a client that disconnects while it waits for a connection is never sent", async () => {
  const clients = Array.from({ length: 20 }, () => {
    const abort = new AbortController();
    const answer = proxy.fetch(PODS, { signal: abort.signal });
    answer.catch(() => undefined);
    return abort;
  });
  await eventually(async () => (await gauge("waiting_requests", "list")) > 10);
  for (const abort of clients) abort.abort();
  await eventually(async () => (await gauge("waiting_requests", "list")) === 0);
  const seen = api.seen.length;
  api.script = (_req, res) => answerJson(res, 200, {});
  expect((await proxy.fetch(PODS)).status).toBe(200);
  expect(api.seen.length).toBe(seen + 1);
});

it("no request queues while the API server is away: each is answered at once", async () => {
  await api.close();
  const started = performance.now();
  const answers = await Promise.all(Array.from({ length: 40 }, () => proxy.fetch(PODS)));
  expect(new Set(answers.map(({ status, headers }) => `${status} ${headers["retry-after"]}`))).toEqual(new Set(["503 1"]));
  expect(performance.now() - started).toBeLessThan(5_000);
});

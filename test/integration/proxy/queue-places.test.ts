// The request queue of a pool has a limited number of places. A write without its client and an answer that is not read give their place back.
// Slow writes do not delay gets.
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DEFAULT_TIMEOUTS } from "../../../src/proxy/api-server/api-server.ts";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { objectsInReply } from "../../../src/proxy/outbound/isolate/object-labels.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type HarnessOptions, type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

const PODS = "/api/v1/namespaces/a/pods";
const POD = `${PODS}/b`;
const ODD = "/apis/x.io/v1/namespaces/a/things/odd";

let api: FakeApi;
let proxy: ProxyHarness | undefined;

beforeEach(async () => {
  api = await startFakeApi();
  // Writes hang, as behind a webhook that never answers. The odd object cannot be read. A request with "big" gets a big answer.
  api.script = (req, res) => {
    if (req.method === "POST") return;
    if (req.url === ODD) {
      res.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      res.end(Buffer.alloc(200_000, 1));
    } else if (req.url?.includes("big")) {
      res.writeHead(200, { "content-type": "application/json" }).end(Buffer.alloc(20_000_000, " "));
    } else answerJson(res, 200, {});
  };
});

afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
  await api.close();
});

async function start(options: Partial<HarnessOptions> = {}): Promise<ProxyHarness> {
  proxy = await startProxy({ api, ...options });
  return proxy;
}

async function timedGet(of: ProxyHarness, path = POD): Promise<number> {
  const started = performance.now();
  expect((await of.fetch(path)).status).toBe(200);
  return performance.now() - started;
}

/** Sends writes that hang, each on a connection of its own. Resolves when the API server has received them. */
async function beginWrites(of: ProxyHarness, count: number) {
  const before = api.seen.length;
  const { ca } = of.agent.options;
  const writes = Array.from({ length: count }, () => {
    const write = request(new URL(of.ready.url), { agent: false, ca, method: "POST", path: PODS });
    write.on("error", () => undefined).end("{}");
    return write;
  });
  await eventually(() => api.seen.length === before + count, { withinMs: 10_000 });
  return writes;
}

it("writes behind a slow webhook delay no get", async () => {
  const of = await start();
  const writes = await beginWrites(of, 60);
  expect(await timedGet(of)).toBeLessThan(2_000);
  for (const write of writes) write.destroy();
}, 20_000);

it("writes without their clients keep their connections, but not their places in the queue", async () => {
  const of = await start({ upstream: { timeouts: { ...DEFAULT_TIMEOUTS, abandonedMs: 10_000 } } });
  const waiting = async () => {
    const metric = await of.registry.getSingleMetric("ctrlmesh_proxy_upstream_waiting_requests")?.get();
    return metric?.values.find(({ labels }) => labels.pool === "short")?.value;
  };
  // If these writes still counted, there would be more than may run at once.
  for (let round = 0; round < 5; round++) {
    for (const write of await beginWrites(of, 60)) write.destroy();
  }
  expect(await timedGet(of)).toBeLessThan(2_000);
  expect(await waiting()).toBe(0);
  expect(api.open).toBeGreaterThan(290);
  await eventually(() => api.open < 10, { withinMs: 20_000 });
}, 60_000);

it.each<[string, Layer]>([
  [
    "the proxy cannot read",
    (next) => async (call) => (call.target === ODD ? (await objectsInReply(await next(call))).reply : next(call)),
  ],
  [
    "a layer replaces",
    (next) => async (call) => (call.target === ODD ? { ...(await next(call)), headers: {}, body: null } : next(call)),
  ],
])("a reply that %s gives its place back", async (_name, isolate) => {
  const of = await start({ isolate });
  for (let index = 0; index < 12; index++) expect((await of.fetch(ODD)).status).toBeGreaterThan(0);
  expect(await timedGet(of)).toBeLessThan(2_000);
  await eventually(() => api.open <= 4);
});

it("a list that its client does not read is broken off, so that other lists run", async () => {
  const of = await start({ traffic: { stalledMs: 500 } });
  const open = () => of.open("/api/v1/pods?labelSelector=big");
  const stalled = await Promise.all(Array.from({ length: 16 }, open)); // as many as may run at once
  const broken = stalled.map(
    (res: IncomingMessage) => new Promise((resolve) => res.once("error", resolve).once("close", resolve)),
  );
  expect(await timedGet(of, "/api/v1/pods")).toBeLessThan(5_000);
  for (const res of stalled) res.resume();
  await Promise.all(broken);
  expect(stalled.some(({ complete }) => !complete)).toBe(true);
}, 30_000);

// Watches share HTTP/2 connections. These tests send GOAWAY, resets and ends on such a connection and check each watch.
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants } from "node:http2";
import { afterEach, expect, it } from "vitest";
import { DEFAULT_LIVENESS } from "../../../src/proxy/api-server/connections.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, startFakeApi } from "../../support/fake-api.ts";
import { type FakeHttp2Api, type FakeHttp2Options, startFakeHttp2Api } from "../../support/fake-http2-api.ts";
import { type HarnessOptions, type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";

let api: FakeHttp2Api;
let proxy: ProxyHarness;
const open: ServerResponse[] = [];

afterEach(async () => {
  await proxy.stop();
  await api.close();
  open.length = 0;
});

/** Watches stay open in `open`. Every other request is answered at once. */
function script(req: IncomingMessage, res: ServerResponse): void {
  if (!req.url?.includes("watch=1")) {
    answerJson(res, 200, {});
    return;
  }
  res.writeHead(200, { "content-type": "application/json" });
  res.write("event\n");
  open.push(res);
}

async function setup(options: Partial<FakeHttp2Options> = {}, harness: Partial<HarnessOptions> = {}): Promise<void> {
  api = await startFakeHttp2Api({ script, ...options });
  proxy = await startProxy({ api, ...harness });
}

const PODS = "/api/v1/pods";
const WATCH = `${PODS}?watch=1`;
const openMany = (count: number) => Promise.all(Array.from({ length: count }, () => proxy.open(WATCH)));

it("fifty watches share one connection, which gets do not use", async () => {
  await setup();
  const watches = await openMany(50);
  expect((await proxy.fetch(PODS)).status).toBe(200);
  expect([api.sessions.size, api.streams, api.accepted]).toEqual([1, 50, 2]);
  for (const watch of watches) watch.destroy();
  await eventually(() => api.streams === 0);
  expect([api.sessions.size, new Set(api.closed)]).toEqual([1, new Set([constants.NGHTTP2_CANCEL])]);
});

it("the headers, query and answer of a watch pass unchanged", async () => {
  await setup();
  api.script = (_req, res) => {
    res.writeHead(410, { "content-type": "application/json", "x-kubernetes-pf-flowschema-uid": "u", warning: "299 - old" });
    res.end(`{"kind":"Status"}`);
  };
  const target = `${WATCH}&labelSelector=${"a".repeat(60_000)}`;
  const headers = { authorization: `Bearer ${"t".repeat(30_000)}`, "impersonate-group": ["a", "b"], accept: "x/y" };
  const answer = await proxy.fetch(target, { headers });
  expect([answer.status, answer.body.toString()]).toEqual([410, `{"kind":"Status"}`]);
  expect(answer.headers).toMatchObject({ "x-kubernetes-pf-flowschema-uid": "u", warning: "299 - old" });
  expect(Object.keys(answer.headers).filter((name) => name.startsWith(":"))).toEqual([]);
  const [seen] = api.seen;
  expect(seen?.url).toBe(target);
  expect(seen?.headers.authorization).toBe(headers.authorization);
  expect(seen?.rawHeaders.filter((_, index, all) => all[index - 1] === "impersonate-group")).toEqual(["a", "b"]);
});

it("after GOAWAY running watches go on, and new ones take a new connection", async () => {
  await setup();
  const [old] = await openMany(1);
  const seen: string[] = [];
  old?.on("data", (chunk: Buffer) => seen.push(chunk.toString()));
  const [session] = api.sessions;
  session?.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
  await eventually(async () => {
    const [fresh] = await openMany(1);
    fresh?.on("error", () => undefined).destroy();
    return api.sessions.size === 2;
  });
  open[0]?.write("later\n");
  await eventually(() => seen.join("") === "event\nlater\n");
  open[0]?.end();
  await eventually(() => api.sessions.size === 1 && !api.sessions.has(session as never));
});

it("a quiet watch stays open before GOAWAY, and also after GOAWAY, when no PING is possible", async () => {
  await setup({}, { upstream: { liveness: { ...DEFAULT_LIVENESS, pingEveryMs: 100 } } });
  const [watch] = await openMany(1);
  let ended = false;
  watch?.on("close", () => {
    ended = true;
  });
  const seen: string[] = [];
  watch?.on("data", (chunk: Buffer) => seen.push(chunk.toString())).on("error", () => undefined);
  const quietFor = async (ms: number) => {
    const started = performance.now();
    await eventually(() => performance.now() - started > ms);
  };
  await quietFor(500);
  expect(ended).toBe(false);
  const [session] = api.sessions;
  session?.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
  await quietFor(700);
  expect(ended).toBe(false);
  open[0]?.write("later\n");
  await eventually(() => seen.join("").endsWith("later\n"));
  watch?.destroy();
});

it("GOAWAY with an error ends the watches of that connection, and new watches work", async () => {
  await setup();
  const [old] = await openMany(1);
  const broken = readAll(old as IncomingMessage);
  broken.catch(() => undefined);
  const [session] = api.sessions;
  session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  await expect(broken).rejects.toThrow();
  const [fresh] = await openMany(1);
  expect(fresh?.statusCode).toBe(200);
});

it("the reset of a stream breaks only its watch", async () => {
  await setup();
  const [first, second] = await openMany(2);
  const broken = readAll(first as IncomingMessage);
  broken.catch(() => undefined);
  const seen: string[] = [];
  second?.on("data", (chunk: Buffer) => seen.push(chunk.toString()));
  const streamOf = (res: ServerResponse | undefined) =>
    (res as unknown as { stream: { close(code: number): void } } | undefined)?.stream;
  streamOf(open[0])?.close(constants.NGHTTP2_INTERNAL_ERROR);
  await expect(broken).rejects.toThrow();
  open[1]?.write("later\n");
  await eventually(() => seen.join("").endsWith("later\n"));
  expect(api.sessions.size).toBe(1);
});

it("a watch that the API server ends has a clean end for the client", async () => {
  await setup();
  const [watch] = await openMany(1);
  const whole = readAll(watch as IncomingMessage);
  open[0]?.end("last\n");
  expect((await whole).toString()).toBe("event\nlast\n");
});

it("more watches than one connection allows get further connections", async () => {
  await setup({ maxConcurrentStreams: 10 });
  const [first] = await openMany(1); // from here on the proxy knows the server's settings
  const more = await openMany(24);
  expect([api.sessions.size, api.streams]).toEqual([3, 25]);
  for (const watch of [first, ...more]) watch?.destroy();
});

it("every watch gets 503 with Retry-After while the API server is away, without an attempt to connect for each", async () => {
  await setup();
  await api.close();
  const answers = await Promise.all(Array.from({ length: 50 }, () => proxy.fetch(WATCH)));
  expect(new Set(answers.map(({ status, headers }) => `${status} ${headers["retry-after"]}`))).toEqual(new Set(["503 1"]));
  const failures = await proxy.registry.getSingleMetric("ctrlmesh_proxy_upstream_connect_failures_total")?.get();
  expect(failures?.values.map(({ labels }) => [labels.pool, labels.reason])).toEqual([["watch", "refused"]]);
  expect(failures?.values[0]?.value).toBeLessThan(50);
});

it("hundreds of cancelled watches leave no streams behind", async () => {
  await setup();
  for (let round = 0; round < 6; round++) {
    const watches = await openMany(50);
    for (const watch of watches) watch.destroy();
  }
  await eventually(() => api.streams === 0);
  expect([api.accepted, api.closed.length]).toEqual([1, 300]);
});

it("each watch has its own connection to an API server without HTTP/2", async () => {
  const plain = await startFakeApi(script);
  await setup();
  const old = await startProxy({ api: plain });
  const watches = await Promise.all([1, 2, 3].map(() => old.open(WATCH)));
  expect(watches.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200]);
  await eventually(() => plain.open === 3); // the connection that tried HTTP/2 is closed
  for (const watch of watches) watch.destroy();
  await old.stop();
  await plain.close();
});

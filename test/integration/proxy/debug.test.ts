// The health listener of a running proxy: debug pages, metrics of streams and layers, and a log of requests on demand.
import { request as plainRequest, type RequestOptions } from "node:http";
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { enforced } from "../../../src/mesh/ownership/enforced.ts";
import { NO_CALLER_POLICY } from "../../../src/mesh/ownership/snapshot.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { callOf } from "../../support/layer-call.ts";
import { type HarnessOptions, type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";
import { snapshot, subset, table } from "../../support/route-table.ts";

const POD = "/api/v1/namespaces/a/pods/p";
const SECRET = { authorization: "Bearer s3cret" };

let api: FakeApi;
let proxy: ProxyHarness | undefined;

beforeEach(async () => {
  api = await startFakeApi();
});
afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
  await api.close();
});

async function start(options: Omit<HarnessOptions, "api"> = {}) {
  proxy = await startProxy({ api, ...options });
  const { fetch: send, ready } = proxy;
  const page = async (path: string) => {
    const answer = await fetch(`${ready.healthUrl}${path}`);
    return { status: answer.status, type: answer.headers.get("content-type"), text: await answer.text() };
  };
  return { proxy, send, page };
}

describe("debug pages", () => {
  it("/debug/snapshot shows the enforced snapshot, and no page shows a caller's token or query", async () => {
    const { proxy, send, page } = await start();
    const callers = { ...NO_CALLER_POLICY, defaultOnlyUserAgents: ["foo/*"] };
    proxy.session.current = enforced(snapshot(table([subset("v2")], { a: [0], b: [] }), { subset: "v2", callers }));
    await send(`${POD}?token=hidden`, { headers: SECRET });
    const { status, type, text } = await page("/debug/snapshot");
    expect([status, type]).toEqual([200, "application/json"]);
    expect(JSON.parse(text)).toMatchObject({ subset: "v2", namespaces: { total: 2 }, callers });
    for (const path of ["/debug/snapshot", "/debug/plans", "/metrics"]) {
      expect((await page(path)).text).not.toMatch(/s3cret|hidden/);
    }
  });

  it("/debug/plans shows the planner's latest records", async () => {
    const { proxy, page } = await start();
    const { info } = callOf("GET", "/api/v1/pods?labelSelector=a%3Dbcd");
    if (info.kind !== "resource") throw new Error("no call for objects");
    const outcome = { plan: "labels", namespaces: { own: 1, foreign: 2 }, notSent: [], status: 200 } as const;
    proxy.plans.record({ info }, outcome);
    const selectorChars = { label: 5, field: 0, shard: 0 };
    const entry = { group: "", resource: "pods", verb: "list", selectorChars, ...outcome };
    expect(JSON.parse((await page("/debug/plans")).text)).toMatchObject({ plans: [{ ...entry, requests: 1 }] });
  });

  it("/debug/requests waits for the next requests and shows no token, query or body", async () => {
    const { send, page } = await start();
    await send("/version");
    const collected = page("/debug/requests?count=2&seconds=30");
    const text = await eventually(async () => {
      await send(`${POD}?token=hidden`, { headers: SECRET });
      await send("/api/v1/pods?labelSelector=hidden");
      return Promise.race([collected, Promise.reject(new Error("not yet"))]);
    }).then((answer) => answer.text);
    const { requests } = JSON.parse(text) as { requests: object[] };
    expect(requests).toHaveLength(2);
    const about = { method: "GET", code: 200, decision: "forwarded", namespace: "a", name: "p", verb: "get" };
    expect(requests).toContainEqual(expect.objectContaining(about));
    expect(text).not.toMatch(/s3cret|hidden|version/);
  });

  it("are refused to requests with another host name, and to requests that a service mesh's sidecar forwards", async () => {
    const { proxy } = await start();
    const statusOf = (options: RequestOptions) =>
      new Promise<number | undefined>((resolve, reject) => {
        const collected = plainRequest(`${proxy.ready.healthUrl}/debug/snapshot`, options, (answer) => {
          answer.resume().once("end", () => resolve(answer.statusCode));
        });
        collected.once("error", reject).end();
      });
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ headers: { host: "evil.example:5441" } })).toBe(403);
    expect(await statusOf({ localAddress: "127.0.0.6" })).toBe(403);
    expect(await statusOf({ headers: { "x-forwarded-for": "10.1.9.9" } })).toBe(403);
  });

  it("name an invalid parameter, and refuse other paths and methods", async () => {
    const { proxy, page } = await start();
    expect(await page("/debug/requests?count=0")).toMatchObject({ status: 400, text: expect.stringContaining("count") });
    expect((await page("/debug")).status).toBe(404);
    expect((await fetch(`${proxy.ready.healthUrl}/debug/requests`, { method: "POST" })).status).toBe(405);
  });
});

describe("metrics", () => {
  it("count each open watch, log and tunnel until it ends", async () => {
    api.script = (req, res) => {
      req.resume();
      res.writeHead(200, { "content-type": "application/json" });
      res.write("{}");
    };
    api.onUpgrade = (req, socket) => {
      socket.on("error", () => undefined);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\n\r\n`);
      socket.resume();
    };
    const { proxy, page } = await start();
    const open = async (kind: string) =>
      (await page("/metrics")).text.match(new RegExp(`open_streams\\{kind="${kind}"\\} (\\d+)`))?.[1];
    const watch = await proxy.open("/api/v1/pods?watch=1");
    const log = await proxy.open(`${POD}/log?follow=true`);
    const tunnel = await upgrade(proxy, `${POD}/exec`);
    for (const kind of ["watch", "log", "tunnel"]) await eventually(async () => expect(await open(kind), kind).toBe("1"));
    watch.destroy();
    log.destroy();
    tunnel.destroy();
    for (const kind of ["watch", "log", "tunnel"]) await eventually(async () => expect(await open(kind), kind).toBe("0"));
  });

  it("show the time in each layer for one call in 64, and decisions by reason", async () => {
    const { send, page } = await start();
    for (let calls = 0; calls < 65; calls++) await send(POD);
    await send("/api/v1//pods");
    const { text } = await page("/metrics");
    for (const layer of ["request-info", "caller", "election", "isolate", "upstream"]) {
      expect(text).toContain(`ctrlmesh_proxy_layer_seconds_count{layer="${layer}"} 2`);
    }
    expect(text).toContain('ctrlmesh_proxy_decisions_total{decision="forwarded",verb="get",reason=""} 65');
    expect(text).toContain('ctrlmesh_proxy_decisions_total{decision="refused",verb="unreadable",reason="bad-request"} 1');
    expect(text).toMatch(/event_loop_delay_seconds\{quantile="0.99"\} [\d.e-]+/);
  });
});

describe("the access log", () => {
  const logging = async (accessLog: string) => {
    const lines: string[] = [];
    const log = pino({ level: "info" }, { write: (line) => void lines.push(line) });
    const { send } = await start({ accessLog, log });
    for (let calls = 0; calls < 200; calls++) await send(POD, { headers: SECRET });
    return lines.filter((line) => line.includes('"msg":"request"'));
  };

  it("has no line at sample 0, every request at 1, and a share of the requests in between", async () => {
    expect(await logging("sample=0")).toHaveLength(0);
    await proxy?.stop();
    expect(await logging("1")).toHaveLength(200);
    await proxy?.stop();
    const some = await logging("sample=0.5");
    // 0.5 of 200: outside of 50 to 150 once in 10^12 runs.
    expect(some.length).toBeGreaterThan(50);
    expect(some.length).toBeLessThan(150);
    expect(some.join("")).not.toContain("s3cret");
  });
});

describe("callers", () => {
  it("carry the user agent that the app asks for to the API server, also in upgrades", async () => {
    const { proxy, send } = await start();
    const callers = { ...NO_CALLER_POLICY, userAgent: "mesh/" };
    proxy.session.current = enforced(snapshot(table([], {}), { callers }));
    api.script = (req, res) => {
      req.resume();
      answerJson(res, 200, {});
    };
    api.onUpgrade = (_req, socket) => socket.destroy();
    await send(POD, { headers: { "user-agent": "foo/1" } });
    await upgrade(proxy, `${POD}/exec`, { "user-agent": "foo/2" }).catch(() => undefined);
    expect(api.seen.map(({ headers }) => headers["user-agent"])).toEqual(["mesh/foo/1", "mesh/foo/2"]);
  });
});

function upgrade({ ready, agent }: ProxyHarness, path: string, headers: Record<string, string> = {}): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const req = request(new URL(ready.url), {
      agent: false,
      ca: agent.options.ca,
      path,
      headers: { connection: "Upgrade", upgrade: "websocket", ...headers },
    });
    req.on("upgrade", (_res, socket) => resolve(socket));
    req.on("error", reject);
    req.end();
  });
}

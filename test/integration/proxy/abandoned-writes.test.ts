// Writes whose client goes away: what was sent may still be carried out, and counts as in flight until it is answered.
import type { ServerResponse } from "node:http";
import { request } from "node:https";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness | undefined;
/** How the calls ended that reached the layer before the API server. */
let settled: string[] = [];
/** Answers that the API server has not given. */
let waiting: ServerResponse[] = [];

beforeEach(async () => {
  api = await startFakeApi();
  settled = [];
  waiting = [];
  api.script = (req, res) => void req.resume().on("end", () => waiting.push(res));
});

afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
  await api.close();
});

const noteEnds: Layer = (next) => async (call) => {
  try {
    const reply = await next(call);
    settled.push(String(reply.status));
    return reply;
  } catch (error) {
    settled.push(error instanceof Error && "code" in error ? String(error.code) : String(error));
    throw error;
  }
};

function begin(of: ProxyHarness, method: string, length: number, body: string) {
  const headers = { "content-type": "application/json", "content-length": length };
  const { ca } = of.agent.options;
  const req = request(new URL(of.ready.url), { agent: false, ca, method, path: "/api/v1/namespaces/a/pods", headers });
  req.on("error", () => undefined);
  req.write(body);
  return req;
}

describe("a client that goes away", () => {
  it("after it sent a write leaves it in flight until the API server has answered", async () => {
    proxy = await startProxy({ api, isolate: noteEnds });
    begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 1);
    const gone = begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 2);
    gone.destroy();
    // A later request shows that the proxy has seen the other's end.
    const later = proxy.fetch("/api/v1/pods");
    await eventually(() => waiting.length === 3);
    waiting[2]?.end("{}");
    await later;
    expect(settled).toEqual(["200"]);
    waiting[1]?.writeHead(201).end("{}");
    await eventually(() => settled.length === 2);
    expect(settled).toEqual(["200", "ABORTED"]);
    waiting[0]?.end("{}");
    await eventually(() => settled.length === 3);
  });

  it("in the middle of a body ends the write at once, and the API server gets half of it", async () => {
    proxy = await startProxy({ api, isolate: noteEnds });
    let reset = 0;
    api.script = (req) => {
      req.resume();
      req.once("error", () => reset++);
    };
    const gone = begin(proxy, "POST", 100, '{"half');
    await eventually(() => api.seen.length === 1);
    gone.destroy();
    await eventually(() => settled.length === 1 && reset === 1 && api.open === 0);
    expect(settled).toEqual(["ABORTED"]);
  });

  it("while it reads ends the read at once", async () => {
    proxy = await startProxy({ api, isolate: noteEnds });
    const gone = begin(proxy, "GET", 0, "");
    await eventually(() => waiting.length === 1);
    gone.destroy();
    await eventually(() => settled.length === 1 && api.open === 0);
  });

  it("does not hold a shutdown up", async () => {
    proxy = await startProxy({ api, isolate: noteEnds });
    const gone = begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 1);
    gone.destroy();
    await proxy.stop();
    proxy = undefined;
    expect(settled).toEqual(["ABORTED"]);
  });
});

// Writes that outlive their clients. The API server may still carry out a sent write, so it counts as in flight until its answer.
import type { ServerResponse } from "node:http";
import { request } from "node:https";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness | undefined;
/** The outcome of each call that passed the last layer before the API server. */
let outcomes: string[] = [];
/** Answers that the API server has not given yet. */
let waiting: ServerResponse[] = [];

beforeEach(async () => {
  api = await startFakeApi();
  outcomes = [];
  waiting = [];
  api.script = (req, res) => void req.resume().on("end", () => waiting.push(res));
});

afterEach(async () => {
  await proxy?.stop();
  proxy = undefined;
  await api.close();
});

const recordOutcomes: Layer = (next) => async (call) => {
  try {
    const reply = await next(call);
    outcomes.push(String(reply.status));
    return reply;
  } catch (error) {
    outcomes.push(error instanceof Error && "code" in error ? String(error.code) : String(error));
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

describe("a client that disconnects", () => {
  it("after sending a write leaves that write in flight until the API server has answered", async () => {
    proxy = await startProxy({ api, isolate: recordOutcomes });
    begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 1);
    const gone = begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 2);
    gone.destroy();
    // The answer to a later request shows that the proxy has seen the client disconnect.
    const later = proxy.fetch("/api/v1/pods");
    await eventually(() => waiting.length === 3);
    waiting[2]?.end("{}");
    await later;
    expect(outcomes).toEqual(["200"]);
    waiting[1]?.writeHead(201).end("{}");
    await eventually(() => outcomes.length === 2);
    expect(outcomes).toEqual(["200", "ABORTED"]);
    waiting[0]?.end("{}");
    await eventually(() => outcomes.length === 3);
  });

  it("in the middle of a body ends the write at once, and the API server gets a part of the body", async () => {
    proxy = await startProxy({ api, isolate: recordOutcomes });
    let reset = 0;
    api.script = (req) => {
      req.resume();
      req.once("error", () => reset++);
    };
    const gone = begin(proxy, "POST", 100, '{"half');
    await eventually(() => api.seen.length === 1);
    gone.destroy();
    await eventually(() => outcomes.length === 1 && reset === 1 && api.open === 0);
    expect(outcomes).toEqual(["ABORTED"]);
  });

  it("during a read ends that read at once", async () => {
    proxy = await startProxy({ api, isolate: recordOutcomes });
    const gone = begin(proxy, "GET", 0, "");
    await eventually(() => waiting.length === 1);
    gone.destroy();
    await eventually(() => outcomes.length === 1 && api.open === 0);
  });

  it("during a write does not delay a shutdown", async () => {
    proxy = await startProxy({ api, isolate: recordOutcomes });
    const gone = begin(proxy, "POST", 2, "{}");
    await eventually(() => waiting.length === 1);
    gone.destroy();
    await proxy.stop();
    proxy = undefined;
    expect(outcomes).toEqual(["ABORTED"]);
  });
});

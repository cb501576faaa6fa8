import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCa } from "../../../src/base/certificates.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

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

const PODS = "/api/v1/pods";

describe("failures of the API server", () => {
  it("a client gets 503 with Retry-After while the API server is away, and 200 when the API server is back", async () => {
    proxy = await startProxy({ api });
    const { port } = api;
    await api.close();
    const answer = await proxy.fetch(PODS);
    expect([answer.status, answer.headers["retry-after"], answer.headers["x-ctrlmesh-error"]]).toEqual([
      503,
      "1",
      "UPSTREAM_UNREACHABLE",
    ]);
    const { ca } = api;
    api = await startFakeApi(undefined, port);
    await writeFile(proxy.apiCaFile, api.ca.certPem);
    expect(api.ca.certPem).not.toBe(ca.certPem);
    expect((await proxy.fetch(PODS)).status).toBe(200);
  });

  it("a server with a certificate of another CA gets no request", async () => {
    proxy = await startProxy({ api });
    await writeFile(proxy.apiCaFile, createCa({ commonName: "wrong", now: Date.now() }).certPem);
    const answer = await proxy.fetch(PODS, { headers: { authorization: "Bearer secret" } });
    expect(answer.status).toBe(503);
    expect(api.seen).toHaveLength(0);
  });

  it("a server with a certificate for another name gets no request", async () => {
    const elsewhere = Object.create(api, { url: { value: `https://127.0.0.2:${api.port}` } }) as FakeApi;
    proxy = await startProxy({ api: elsewhere });
    expect((await proxy.fetch(PODS)).status).toBe(503);
    expect(api.seen).toHaveLength(0);
  });

  it("new connections trust the CA file as it is now, without a restart, after the API server rotates its CA", async () => {
    proxy = await startProxy({ api });
    expect((await proxy.fetch(PODS)).status).toBe(200);
    api.rotateCa();
    api.reset();
    expect((await proxy.fetch(PODS)).status).toBe(503);
    await writeFile(proxy.apiCaFile, api.ca.certPem);
    expect((await proxy.fetch(PODS)).status).toBe(200);
  });

  it("the proxy does not start if it cannot read the API server's CA file", async () => {
    await expect(startProxy({ api, apiCaFile: join("/nowhere", "ca.crt") })).rejects.toThrow(/reading the API server's CA/);
  });

  it("a client gets 504 if the API server does not answer in time", async () => {
    proxy = await startProxy({ api, upstream: { timeouts: { headersMs: 200, bodyMs: 200 } } });
    api.script = () => {};
    const answer = await proxy.fetch(PODS);
    expect([answer.status, answer.headers["x-ctrlmesh-error"]]).toEqual([504, "UPSTREAM_TIMEOUT"]);
  });

  it("a client gets 503 if the API server sends garbage", async () => {
    proxy = await startProxy({ api });
    api.script = (req) => req.socket.end("not http at all\r\n\r\n");
    expect((await proxy.fetch(PODS)).status).toBe(503);
  });

  it("the log of a failed request contains no token, body or query", async () => {
    const written: string[] = [];
    const log = pino({ level: "trace" }, { write: (line) => void written.push(line) });
    proxy = await startProxy({ api, log, accessLog: true, isolate: () => async () => Promise.reject(new TypeError("a bug")) });
    const body = Buffer.from("top secret");
    const answer = await proxy.fetch(`${PODS}?token=hidden`, {
      method: "POST",
      body,
      headers: { authorization: "Bearer s3cret", "content-length": body.length },
    });
    expect([answer.status, answer.headers["x-ctrlmesh-error"]]).toEqual([500, "INTERNAL"]);
    const lines = written.join("");
    expect(lines.match(/a bug/g)?.length).toBeGreaterThan(0);
    expect(lines.match(/answering a request failed/g)).toHaveLength(1);
    expect(lines).not.toMatch(/s3cret|top secret|hidden/);
    expect(answer.body.toString()).not.toContain("a bug");
  });
});

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { createConnection } from "node:net";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { silentLogger } from "../../../src/base/log.ts";
import type { Layer } from "../../../src/proxy/call/call.ts";
import { createTrafficServer, singleCertificate } from "../../../src/proxy/server/traffic-server.ts";
import { eventually } from "../../support/eventually.ts";
import { type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { type ProxyHarness, readAll, startProxy } from "../../support/proxy-harness.ts";

let api: FakeApi;
let proxy: ProxyHarness;

const PODS = "/api/v1/pods";
const WATCH = `${PODS}?watch=1`;
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/ops/leases/operator";

async function isDraining(): Promise<boolean> {
  return (await fetch(`${proxy.ready.healthUrl}/readyz`)).status === 500;
}

/** Sends a request on a connection of its own. */
const fetchAnew = (path: string, method = "GET") => proxy.fetch(path, { method, agent: false, ca: proxy.agent.options.ca });

describe("the drain of a proxy", () => {
  beforeEach(async () => {
    api = await startFakeApi();
  });

  afterEach(async () => {
    await proxy.stop();
    await api.close();
  });

  it("lets a running request finish, with Connection: close, and serves new requests until then", async () => {
    proxy = await startProxy({ api });
    let finish = () => {};
    api.script = (req, res) => {
      if (req.url === LEASE) res.end("released");
      else finish = () => res.end("late");
    };
    const pending = proxy.fetch(PODS);
    await eventually(() => api.seen.length === 1);
    const drained = proxy.drain();
    await eventually(isDraining);
    // An operator that ends together with the proxy releases its lease now, perhaps on a new connection.
    const released = await fetchAnew(LEASE, "PUT");
    expect([released.body.toString(), released.headers.connection]).toEqual(["released", "close"]);
    finish();
    const answer = await pending;
    expect([answer.body.toString(), answer.headers.connection]).toEqual(["late", "close"]);
    await drained;
    await expect(fetchAnew(PODS)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("does not wait for watches: they break off once all other requests have ended", async () => {
    proxy = await startProxy({ api, drainMs: 60_000 });
    api.script = (_req, res) => void res.writeHead(200).write("event\n");
    const watch = await proxy.open(WATCH);
    const cut = readAll(watch);
    cut.catch(() => {});
    await proxy.drain();
    await expect(cut).rejects.toThrow();
  });

  it("ends watches one after another, each with a clean end, and serves the lock meanwhile", async () => {
    // Replaces the layer that writes frames: a stream that the upstream breaks off gets a clean end.
    const clean: Layer = (next) => async (call) => {
      const reply = await next(call);
      if (reply.body === null || reply.body instanceof Uint8Array) return reply;
      const { body } = reply;
      return {
        ...reply,
        body: {
          cancel: (error) => body.cancel(error),
          open: (sink) => body.open({ write: (chunk) => sink.write(chunk), end: () => sink.end(), abort: () => sink.end() }),
        },
      };
    };
    proxy = await startProxy({ api, isolate: clean, drainMs: 4_000 });
    api.script = (req, res) => {
      if (req.url === LEASE) res.end("renewed");
      else res.writeHead(200).write("event\n");
    };
    const started = performance.now();
    const watches = await Promise.all(Array.from({ length: 10 }, () => proxy.open(WATCH)));
    const endedMs: number[] = [];
    const ends = watches.map(async (watch: IncomingMessage) => {
      const body = await readAll(watch);
      endedMs.push(performance.now() - started);
      return body.toString();
    });
    await proxy.fetch(LEASE); // leaves a connection open
    const drained = proxy.drain();
    await eventually(() => endedMs.length >= 3, { everyMs: 5 });
    expect((await proxy.fetch(LEASE, { method: "PUT" })).body.toString()).toBe("renewed");
    await drained;
    expect(await Promise.all(ends)).toEqual(Array.from({ length: 10 }, () => "event\n"));
    const [first = 0, last = 0] = [Math.min(...endedMs), Math.max(...endedMs)];
    expect(last - first).toBeGreaterThan(600);
    expect(last - first).toBeLessThan(1_800);
  });

  it.each([true, false])(
    "serves the late release of a lease, by a get and an update on new connections (with a watch: %s)",
    async (hasWatch) => {
      proxy = await startProxy({ api });
      api.script = (req, res) => {
        if (req.url === WATCH) res.writeHead(200).write("event\n");
        else if (req.method === "PUT") setTimeout(() => res.end("released"), 1_200);
        else res.end("{}");
      };
      await proxy.fetch(LEASE);
      const watch = hasWatch ? await proxy.open(WATCH) : undefined;
      watch?.on("error", () => undefined).resume();
      const drained = proxy.drain();
      await eventually(isDraining);
      expect((await proxy.fetch(LEASE)).headers.connection).toBe("close");
      const started = performance.now();
      await eventually(() => performance.now() - started > 50);
      expect((await fetchAnew(LEASE, "PUT")).body.toString()).toBe("released");
      await drained;
      await expect(fetchAnew(PODS)).rejects.toThrow(/ECONNREFUSED/);
    },
  );

  it("ends at once when no client is connected", async () => {
    proxy = await startProxy({ api, drainMs: 60_000 });
    const started = performance.now();
    await proxy.drain();
    expect(performance.now() - started).toBeLessThan(500);
  });

  it("has a time limit: a request that never ends breaks off", async () => {
    proxy = await startProxy({ api, drainMs: 100 });
    api.script = () => {};
    const pending = proxy.fetch(PODS);
    pending.catch(() => {});
    await eventually(() => api.seen.length === 1);
    await proxy.drain();
    await expect(pending).rejects.toThrow();
  });

  it("keeps the CA for the restarted proxy", async () => {
    proxy = await startProxy({ api });
    const again = await startProxy({ api, dataDir: proxy.dataDir, apiCaFile: proxy.apiCaFile });
    expect((await again.fetch("/healthz", { agent: proxy.agent })).status).toBe(200);
    await again.stop();
  });
});

it("a client that is in its TLS handshake when the server stops accepting still gets an answer", async () => {
  const ca = createCa({ commonName: "test", now: Date.now() });
  const { certPem: cert, keyPem: key } = issueServerCertificate(ca, { dnsNames: ["localhost"], now: Date.now() });
  const clock = createFakeClock();
  const server = createTrafficServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: singleCertificate({ current: () => ({ cert, key }), onChange: () => () => undefined }),
    stack: async () => ({ status: 200, headers: {}, body: Buffer.from("answer") }),
    createRecord: () => ({}),
    clock,
    log: silentLogger(),
  });
  await server.start(new AbortController().signal);
  const agent = new Agent({ keepAlive: true, ca: ca.certPem });
  const options = { agent, host: "localhost", port: server.port };
  const get = (more: object) =>
    new Promise<Buffer>((resolve, reject) => {
      const req = request({ ...options, ...more }, (res) => readAll(res).then(resolve, reject));
      req.on("error", reject).end();
    });
  await get({}); // its connection stays, so the server stays open for a while
  const socket = createConnection(server.port, "127.0.0.1");
  await once(socket, "connect");
  const stopped = server.stop();
  await clock.advance(1_000);
  await eventually(() => expect(get({ agent: false, ca: ca.certPem })).rejects.toThrow(/ECONNREFUSED/));
  const tls = { socket, servername: "localhost", ca: ca.certPem };
  expect((await get({ agent: undefined, createConnection: () => connect(tls) })).toString()).toBe("answer");
  await clock.advance(100);
  await stopped;
  agent.destroy();
});

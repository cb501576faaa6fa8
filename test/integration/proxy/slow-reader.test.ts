// For a client that does not read its watch, the proxy buffers a bounded number of bytes. Such a client delays no other client.
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, get } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { connect } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { collectGarbage } from "../../../src/base/collect-garbage.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { dropStalledReader } from "../../../src/proxy/server/serve.ts";
import { createTrafficServer } from "../../../src/proxy/server/traffic-server.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeApi } from "../../support/fake-api.ts";
import { type FakeHttp2Api, startFakeHttp2Api } from "../../support/fake-http2-api.ts";
import { type ProxyHarness, startProxy } from "../../support/proxy-harness.ts";

const WATCH = "/api/v1/pods?watch=1";
const EVENT = Buffer.from(`${JSON.stringify({ type: "ADDED", object: { data: "x".repeat(8_000) } })}\n`);

describe("a client that does not read", () => {
  let api: FakeHttp2Api;
  let proxy: ProxyHarness;
  let floods: { written: number; res: ServerResponse; stop: boolean }[];

  // Writes as fast as the connection accepts. A watch with `quiet` gets an event only when the test sends it.
  function script(req: IncomingMessage, res: ServerResponse): void {
    res.writeHead(200, { "content-type": "application/json" });
    const flood = { written: 0, res, stop: req.url?.includes("quiet") ?? false };
    floods.push(flood);
    const more = () => {
      while (!flood.stop && !res.destroyed && flood.written < 512 * 1024 * 1024) {
        flood.written += EVENT.length;
        if (!res.write(EVENT)) {
          res.once("drain", more);
          return;
        }
      }
    };
    more();
    if (flood.stop) res.write("first\n");
  }

  beforeEach(() => {
    floods = [];
  });
  afterEach(async () => {
    await proxy.stop();
    await api.close();
  });

  it("fills a bounded buffer, delays no other watch, and gets every event once it reads again", async () => {
    api = await startFakeHttp2Api({ script });
    proxy = await startProxy({ api });
    const stuck = await proxy.open(WATCH); // without a listener for data the client does not read
    const quiet = await proxy.open(`${WATCH}&quiet`);
    const seen: string[] = [];
    quiet.on("data", (chunk: Buffer) => seen.push(chunk.toString()));
    const [flood, other] = floods as [(typeof floods)[0], (typeof floods)[0]];
    const before = bufferedBytes();
    const unreadTotal = await untilStill(() => flood.written);
    expect(bufferedBytes() - before).toBeLessThan(8 * 1024 * 1024); // the rest is in the kernel's buffers of both sockets
    const latencies: number[] = [];
    for (let index = 0; index < 20; index++) {
      const started = performance.now();
      other.res.write(`event ${index}\n`);
      await eventually(() => seen.join("").includes(`event ${index}\n`), { everyMs: 1 });
      latencies.push(performance.now() - started);
    }
    expect(latencies.sort((a, b) => a - b)[10]).toBeLessThan(500);
    // The kernel asks its peer from time to time whether there is room again, and then may take a little more.
    expect(flood.written).toBeLessThan(2 * unreadTotal);

    flood.stop = true;
    let received = 0;
    stuck.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    await eventually(() => received === flood.written);
    stuck.destroy();
    quiet.destroy();
    await eventually(() => api.streams === 0);
  });

  it("frees its stream when it ends", async () => {
    api = await startFakeHttp2Api({ script });
    proxy = await startProxy({ api });
    const stuck = await Promise.all(Array.from({ length: 5 }, () => proxy.open(WATCH)));
    await untilStill(() => floods.reduce((sum, { written }) => sum + written, 0));
    for (const one of stuck) one.destroy();
    await eventually(() => api.streams === 0);
    expect(api.sessions.size).toBe(1);
  });

  it("fills the same bounded buffer if the API server speaks HTTP/1.1 only", async () => {
    const plain = await startFakeApi(script);
    api = plain as FakeHttp2Api;
    proxy = await startProxy({ api: plain });
    const stuck = await proxy.open(WATCH);
    const [flood] = floods as [(typeof floods)[0]];
    const before = bufferedBytes();
    expect(await untilStill(() => flood.written)).toBeLessThan(512 * 1024 * 1024);
    expect(bufferedBytes() - before).toBeLessThan(8 * 1024 * 1024);
    stuck.destroy();
    await eventually(() => flood.res.destroyed);
  });
});

describe("dropStalledReader", () => {
  /** Long enough for a client that reads to have its turn on a busy machine. */
  const STALLED_MS = 1_000;

  // Starts a server that gives one answer, and the client that receives it.
  async function serve(answer: (res: ServerResponse) => void) {
    const ca = createCa({ commonName: "ca", now: Date.now() });
    const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now: Date.now() });
    const dropped: number[] = [];
    const started = performance.now();
    const sockets = new Set<Socket>();
    const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (_req, res) => {
      dropStalledReader(res, STALLED_MS, () => dropped.push(performance.now() - started));
      answer(res.writeHead(200));
    }).on("secureConnection", (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const res = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ port, host: "127.0.0.1", ca: ca.certPem }, resolve).on("error", reject);
    });
    res.on("error", () => undefined);
    const close = async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    };
    return { dropped, res, close };
  }

  it("drops a client that reads nothing although data waits", async () => {
    const { dropped, res, close } = await serve((out) => void out.write(Buffer.alloc(32 * 1024 * 1024)));
    await eventually(() => dropped.length === 1);
    expect(dropped[0]).toBeGreaterThan(STALLED_MS * 0.9);
    res.destroy();
    await close();
  });

  it("keeps a client that has no data waiting, and one that reads slowly", async () => {
    const quiet = await serve((out) => void out.write("hello"));
    const slow = await serve((out) => {
      const more = () =>
        void (out.destroyed || (out.write(Buffer.alloc(64 * 1024)) ? setImmediate(more) : out.once("drain", more)));
      more();
    });
    let chunks = 0;
    slow.res.on("data", () => {
      chunks++;
      slow.res.pause();
    });
    const reading = setInterval(() => slow.res.resume(), 1);
    const started = performance.now();
    await eventually(() => performance.now() - started > 2 * STALLED_MS, { withinMs: 10_000 });
    clearInterval(reading);
    expect([quiet.dropped, slow.dropped]).toEqual([[], []]);
    expect(chunks).toBeGreaterThan(5);
    for (const { res, close } of [quiet, slow]) {
      res.destroy();
      await close();
    }
  });
});

it("a stranger that does not read an answer in bytes loses its connection after a time", async () => {
  const ca = createCa({ commonName: "test", now: Date.now() });
  const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: ["localhost"], now: Date.now() });
  const dropped = Promise.withResolvers<void>();
  const server = createTrafficServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: {
      question: "",
      follow(tls) {
        tls.setSecureContext({ cert: certPem, key: keyPem });
        return () => undefined;
      },
    },
    stack: async ({ signal }) => {
      signal.addEventListener("abort", dropped.resolve);
      return { status: 200, headers: {}, body: Buffer.alloc(32 * 1024 * 1024) };
    },
    createRecord: () => ({}),
    strangers: { maxConnections: 10, mayConnect: () => true },
    stalledMs: 300,
    clock: systemClock,
    log: silentLogger(),
    drainMs: 100,
  });
  await server.start(new AbortController().signal);
  const socket = connect({ port: server.port, host: "127.0.0.1", ca: ca.certPem, servername: "localhost" });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.on("error", () => undefined).pause();
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await dropped.promise;
  let received = 0;
  socket.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  socket.resume(); // only so that the end is seen
  await closed;
  expect(received).toBeLessThan(32 * 1024 * 1024);
  await server.stop();
});

/** Bytes in the buffers of this process that are in use. Client, proxy and API server all run in it. */
function bufferedBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** The value once it has not changed for half a second. */
async function untilStill(value: () => number): Promise<number> {
  let last = -1;
  let since = performance.now();
  await eventually(() => {
    if (value() !== last || last === 0) since = performance.now();
    last = value();
    return performance.now() - since > 500;
  }, 20_000);
  return last;
}

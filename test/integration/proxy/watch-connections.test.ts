// The number of streams on each connection of watches, with real connections and a fake clock.
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createWatchConnections } from "../../../src/proxy/api-server/watch-connections.ts";
import { CallAbort } from "../../../src/proxy/http/call-signal.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { type FakeHttp2Api, startFakeHttp2Api } from "../../support/fake-http2-api.ts";

let api: FakeHttp2Api;
let clock: FakeClock;
let watches: ReturnType<typeof createWatchConnections>;

beforeEach(() => serve(2));

async function serve(maxConcurrentStreams: number): Promise<void> {
  api = await startFakeHttp2Api({ script: (_req, res) => void res.writeHead(200).write("event\n"), maxConcurrentStreams });
  clock = createFakeClock();
  watches = createWatchConnections({
    origin: new URL(api.url),
    connect: (_options, callback) => {
      const socket = connectTls({ host: "127.0.0.1", port: api.port, ca: api.ca.certPem, ALPNProtocols: ["h2"] });
      socket.once("secureConnect", () => callback(null, socket));
    },
    clock,
    pingEveryMs: 15_000,
    onLost: () => undefined,
  });
}

afterEach(async () => {
  watches.destroy();
  await api.close();
});

async function open() {
  const headers = [":method", "GET", ":scheme", "https", ":authority", "localhost", ":path", "/api/v1/pods?watch=1"];
  const stream = await watches.open(headers, new CallAbort());
  stream?.on("error", () => undefined);
  return stream;
}

it("many first watches at once respect the number of streams that a connection allows", async () => {
  await Promise.all(Array.from({ length: 7 }, open));
  await eventually(() => api.streams === 7);
  expect(api.sessions.size).toBe(4);
});

it("cancelled watches count for one more second, since the API server may still handle them", async () => {
  const openAndCancel = async () => {
    const stream = await open();
    const closed = new Promise((resolve) => stream?.once("close", resolve));
    stream?.close(8);
    await closed;
  };
  for (let index = 0; index < 8; index++) await openAndCancel();
  expect(api.accepted).toBe(1);
  await openAndCancel();
  expect(api.accepted).toBe(2);
  await clock.advance(1_001);
  for (let index = 0; index < 8; index++) await openAndCancel();
  expect(api.accepted).toBe(2);
});

it("a server that allows no streams costs each watch one connection, which is closed", async () => {
  watches.destroy();
  await api.close();
  await serve(0);
  const opened = open().catch((error: { code: string }) => error.code);
  await eventually(() => api.accepted > 0);
  setTimeout(() => watches.destroy(), 300); // ends the attempts of a proxy that connects again and again
  expect([await opened, api.accepted]).toEqual(["UPSTREAM_UNREACHABLE", 1]);
  await eventually(() => api.sessions.size === 0);
});

it("invalid headers of a client fail with BAD_REQUEST, and the connection stays open", async () => {
  await open();
  await expect(watches.open([":method", "GET", "bad name", "x"], new CallAbort())).rejects.toMatchObject({ code: "BAD_REQUEST" });
  await open();
  expect(api.accepted).toBe(1);
});

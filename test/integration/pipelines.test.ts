// What clients that may be anybody can make of Node's HTTP servers, over real sockets: how many requests and how many chunks of a body come to be.
import { once } from "node:events";
import { createServer as createHttpServer, type Server, ServerResponse } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { createCa } from "../../src/base/certificates.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { CompactRequest } from "../../src/base/compact-body.ts";
import { createPlaces } from "../../src/base/connection-places.ts";
import { GUARDED_SERVER, guardConnections } from "../../src/base/guard-connections.ts";
import { eventually } from "../support/eventually.ts";

const CONNECTIONS = 40;
/** 62 KB: what Node reads from a socket at once. */
const REQUESTS = 2_400;
const pair = createCa({ commonName: "test", now: Date.now() });

let server: Server<typeof CompactRequest, typeof CountedResponse> | HttpsServer<typeof CompactRequest, typeof CountedResponse>;
let sockets: Socket[] = [];
/** Requests for which Node has made an answer: those that it keeps until the connection has ended. */
let made = 0;
/** Requests that the owner of the server has seen on an open connection. */
let seen: CompactRequest[] = [];

class CountedResponse extends ServerResponse<CompactRequest> {
  constructor(req: CompactRequest) {
    super(req);
    made++;
  }
}

async function start(isTls: boolean): Promise<void> {
  const options = { ...GUARDED_SERVER, ServerResponse: CountedResponse };
  server = isTls ? createHttpsServer({ ...options, cert: pair.certPem, key: pair.keyPem }) : createHttpServer(options);
  server.on("request", (req: CompactRequest) => {
    if (!req.socket.destroyed) seen.push(req);
  });
  guardConnections(server, { places: createPlaces({ max: CONNECTIONS, clock: systemClock }), clock: systemClock });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}

/** @returns the connection, and the TCP socket under it */
async function open(isTls: boolean): Promise<{ readonly socket: Socket; readonly tcp: Socket }> {
  const { port } = server.address() as AddressInfo;
  const tcp = connectTcp({ port, host: "127.0.0.1" });
  const socket = isTls ? connectTls({ socket: tcp, rejectUnauthorized: false }) : tcp;
  for (const each of [socket, tcp]) each.on("error", () => undefined);
  await once(socket, isTls ? "secureConnect" : "connect");
  sockets.push(socket, tcp);
  return { socket, tcp };
}

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  [sockets, seen, made] = [[], [], 0];
});

describe.each([
  ["TCP", false],
  ["TLS", true],
])("a pipeline of thousands of requests on each place, over %s", (_, isTls) => {
  it.each([
    ["ordinary ones", "GET / HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["ones with an expectation that nobody knows", "GET / HTTP/1.1\r\nhost: a\r\nexpect: x\r\n\r\n"],
    ["ones that wait for 100 Continue", "GET / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n"],
    ["ones without a host", "GET / HTTP/1.1\r\na: b\r\n\r\n"],
  ])("%s: two of each connection are served at most, and then it is cut", async (_, request) => {
    await start(isTls);
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(isTls)));
    const closed = clients.map(({ socket }) => new Promise((resolve) => socket.resume().once("close", resolve)));
    for (const { socket } of clients) socket.write(request.repeat(REQUESTS));
    await Promise.all(closed);
    expect(made).toBeGreaterThanOrEqual(CONNECTIONS);
    expect(made).toBeLessThanOrEqual(2 * CONNECTIONS);
  });

  it("before a reset: none is served uncounted", async () => {
    await start(isTls);
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(isTls)));
    for (const { socket, tcp } of clients) {
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(REQUESTS));
      setImmediate(() => tcp.resetAndDestroy());
    }
    await sleep(1_000);
    expect(made).toBeLessThanOrEqual(2 * CONNECTIONS);
    expect(seen.length).toBeLessThanOrEqual(2 * CONNECTIONS);
  });
});

describe.each([
  ["TCP", false],
  ["TLS", true],
])("over %s", (_, isTls) => {
  it("a body that nobody reads stays in the socket, and is whole when somebody reads it", async () => {
    await start(isTls);
    const { socket } = await open(isTls);
    socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 400\r\n\r\n");
    await eventually(() => seen.length === 1);
    for (let byte = 0; byte < 400; byte++) socket.write("x");
    await sleep(200);
    const [request] = seen as [CompactRequest];
    expect(request.readableLength).toBeLessThanOrEqual(400);
    const chunks: number[] = [];
    const ended = once(request, "end");
    request.on("data", (chunk: Buffer) => chunks.push(chunk.length));
    await ended;
    expect(chunks.reduce((sum, length) => sum + length, 0)).toBe(400);
  });

  it("a body without a length is refused before a chunk is read, and the answer says so", async () => {
    await start(isTls);
    const { socket } = await open(isTls);
    let answer = "";
    socket.on("data", (chunk: Buffer) => {
      answer += chunk.toString();
    });
    const closed = once(socket, "close");
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\nx\r\n".repeat(3_000)}`);
    await closed;
    expect([seen, made]).toEqual([[], 0]);
    expect(answer).toMatch(/^HTTP\/1\.1 411 Length Required\r\n/);
  });
});

it("a body in thousands of TLS records of one byte ends its connection after some hundred, though somebody reads it", async () => {
  await start(true);
  const { socket } = await open(true);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 30000\r\n\r\n");
  await eventually(() => seen.length === 1);
  let read = 0;
  seen[0]?.on("data", ({ length }: Buffer) => {
    read += length;
  });
  // Node joins writes that wait, so each waits for the last.
  for (let byte = 0; byte < 20_000 && !socket.destroyed; byte++) await new Promise((resolve) => socket.write("x", resolve));
  await closed;
  expect(read).toBeLessThan(2_000);
});

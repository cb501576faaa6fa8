// API servers that do all they can to exhaust their client. Each way to do so is a server of its own.
import type { IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { createGzip } from "node:zlib";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { type Script, startFakeApi } from "../fake-api.ts";
import { frame } from "../http2-frames.ts";

export interface HostileServer {
  readonly url: string;
  readonly caPem: string;
  close(): Promise<void>;
}

const CHUNK = 64 * 1024;
const isWatch = ({ url = "" }: IncomingMessage) => url.includes("watch=1");
const LIST = '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[';
const EVENT = '{"type":"ADDED","object":{"metadata":{"name":"a","namespace":';

/** Answers with a beginning, and then with the chunk without an end. */
const endless =
  (beginning: (req: IncomingMessage) => string | Buffer, chunk: Buffer, type = "application/json", gzip = false): Script =>
  (req, res) => {
    req.resume();
    res.on("error", () => undefined);
    res.writeHead(200, { "content-type": type, ...(gzip && { "content-encoding": "gzip" }) });
    const body = gzip ? createGzip() : res;
    if (body !== res) body.on("error", () => undefined).pipe(res);
    body.write(beginning(req));
    const send = () => {
      while (!res.destroyed && body.write(chunk));
    };
    body.on("drain", () => setImmediate(send));
    send();
  };
const TEXT = Buffer.alloc(CHUNK, "x");
const ITEM = `{"metadata":{"name":"a","namespace":"theirs","resourceVersion":"1"}},`;
const EVENT_OF_NOBODY = Buffer.from(`${EVENT}"nobody","resourceVersion":"2"},"data":{"a":"${"x".repeat(8_000)}"}}}\n`.repeat(8));

const SCRIPTS: Readonly<Record<string, Script>> = {
  "an endless object": endless((req) => (isWatch(req) ? `${EVENT}"` : `${LIST}{"metadata":{"name":"`), TEXT),
  "an endless list": endless(() => LIST, Buffer.from(ITEM.repeat(1_000))),
  "endless metadata": endless(() => '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"', TEXT),
  "events that wait": endless(() => "", EVENT_OF_NOBODY),
  "endless nesting": endless(() => '{"kind":"ConfigMapList","items":', Buffer.alloc(CHUNK, "[")),
  "an endless protobuf message": endless(
    () => Buffer.from([0x6b, 0x38, 0x73, 0, 0x12, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x12, 0xff, 0xff, 0xff, 0x7f]),
    TEXT,
    "application/vnd.kubernetes.protobuf",
  ),
  "a gzip bomb": endless(() => `${LIST}{"metadata":{"name":"`, Buffer.alloc(CHUNK), "application/json", true),
  "huge headers": (req, res) => {
    req.resume();
    req.socket.write(`HTTP/1.1 200 OK\r\nx-a: ${"x".repeat(60_000)}\r\n`);
    pump(req.socket, Buffer.from(`x-b: ${"x".repeat(8_000)}\r\n`), res);
  },
  "a slow drip": (req, res) => {
    req.resume();
    res.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => res.write(" "), 200);
    res.on("close", () => clearInterval(timer));
  },
  "a huge discovery": endless(
    () => '{"kind":"APIResourceList","groupVersion":"v1","resources":[',
    Buffer.from('{"name":"a","namespaced":true},'.repeat(2_000)),
  ),
  silence: (req) => void req.resume(),
};

function pump(socket: Socket, bytes: Buffer, until: { readonly destroyed: boolean } = socket): void {
  const send = () => {
    while (!until.destroyed && socket.write(bytes));
  };
  socket.on("drain", () => setImmediate(send)).on("error", () => undefined);
  send();
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION] = [0, 1, 3, 4, 6, 8, 9] as const;
function setting(id: number, value: number): Buffer {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(id, 0);
  payload.writeUInt32BE(value, 2);
  return payload;
}
const OWN_SETTINGS = frame(SETTINGS, 0, 0, setting(3, 1_000));
const STATUS_200 = Buffer.from([0x88]);
const NONE = Buffer.alloc(0);
const number32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
/** A literal header that enters the table, so each one is new. */
const literal = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0x81, 0x1e]), Buffer.alloc(4_000, "y")]);

/** What a server sends on each connection, once the client has sent the first request. */
const FRAMES: Readonly<Record<string, (socket: Socket) => void>> = {
  "a CONTINUATION flood": (socket) => {
    socket.write(frame(HEADERS, 0, 1, STATUS_200));
    pump(socket, frame(CONTINUATION, 0, 1, literal));
  },
  "a SETTINGS flood": (socket) => pump(socket, Buffer.concat(Array.from({ length: 500 }, () => OWN_SETTINGS))),
  "a PING flood": (socket) => pump(socket, Buffer.concat(Array.from({ length: 500 }, () => frame(PING, 0, 0, Buffer.alloc(8))))),
  "resets of all streams": (socket) =>
    pump(socket, Buffer.concat(Array.from({ length: 250 }, (_, index) => frame(RST_STREAM, 0, index * 2 + 1, number32(7))))),
  "a huge HPACK table": (socket) => {
    socket.write(frame(SETTINGS, 0, 0, setting(1, 0xffff_ffff)));
    pump(socket, frame(HEADERS, 4, 1, Buffer.concat([Buffer.from([0x3f, 0xe1, 0xff, 0xff, 0x7f]), STATUS_200, literal])));
  },
  "windows of 0": (socket) => {
    socket.write(frame(SETTINGS, 0, 0, setting(4, 0)));
    pump(socket, frame(WINDOW_UPDATE, 0, 0, number32(0x7fff_ffff)));
  },
  "empty DATA frames": (socket) => {
    socket.write(frame(HEADERS, 4, 1, STATUS_200));
    pump(socket, Buffer.concat(Array.from({ length: 500 }, () => frame(DATA, 0, 1, NONE))));
  },
  "more streams than it gets": (socket) => pump(socket, frame(HEADERS, 4, 2, STATUS_200)),
  "no streams": (socket) => void socket.write(frame(SETTINGS, 0, 0, setting(3, 0))),
};

export const WAYS = [...Object.keys(SCRIPTS), ...Object.keys(FRAMES)];

export async function startHostileServer(way: string): Promise<HostileServer> {
  const flood = FRAMES[way];
  if (flood !== undefined) return startFrames(flood);
  const api = await startFakeApi(SCRIPTS[way]);
  return { url: api.url, caPem: api.ca.certPem, close: () => api.close() };
}

async function startFrames(flood: (socket: Socket) => void): Promise<HostileServer> {
  const ca = createCa({ commonName: "hostile ca", now: Date.now() });
  const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now: Date.now() });
  const sockets = new Set<TLSSocket>();
  const server = createServer({ cert: leaf.certPem, key: leaf.keyPem, ALPNProtocols: ["h2", "http/1.1"] }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket));
    socket.resume();
    if (socket.alpnProtocol !== "h2") return; // other requests have no answer
    socket.write(OWN_SETTINGS);
    socket.once("data", () => flood(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caPem: ca.certPem,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

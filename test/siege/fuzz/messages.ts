// The messages of the port fuzz: random bytes, and TLS records, HTTP/1 requests, HTTP/2 frames and gRPC messages that are right, almost right, or cut
// short. Pure: all randomness comes from the seed.

import type { ProxyMessage } from "../../../src/mesh/contract/messages.ts";
import { CONNECT } from "../../../src/wire/load-proto.ts";
import { seededRandom } from "../../support/random.ts";
import { registrationWith, tableOf } from "../foreign-tables.ts";
import { head, review } from "../requests.ts";

export type Random = () => number;
export type MessageKind = "bytes" | "tls" | "http1" | "http2" | "grpc";

export const MESSAGES: Readonly<Record<MessageKind, (random: Random) => Buffer>> = {
  bytes: (random) => bytesOf(random, size(random)),
  tls: (random) => damaged(random, tlsRecord(random)),
  http1: (random) => damaged(random, Buffer.from(request(random))),
  http2: (random) => damaged(random, http2(random)),
  grpc: (random) => damaged(random, CONNECT.requestSerialize(pick(random, PROXY_MESSAGES))),
};

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}

function bytesOf(random: Random, length: number): Buffer {
  const at = Math.floor(random() * (NOISE.length - length));
  return NOISE.subarray(at, at + length);
}

/** From which random bytes are taken: to make each anew would take longer than to send it. */
const NOISE = Buffer.from(Array.from({ length: 65_536 }, seededRandom(1)).map((value) => value * 256));

/** Mostly short. */
function size(random: Random): number {
  return Math.floor(2 ** (random() * 12));
}

/** As it is, cut short, with some bytes changed, or with something in it. */
function damaged(random: Random, message: Buffer): Buffer {
  const bytes = Buffer.from(message);
  const at = Math.floor(random() * bytes.length);
  const how = random();
  if (how < 0.3) return bytes;
  if (how < 0.5) return bytes.subarray(0, at);
  if (how < 0.6) return Buffer.concat([bytes.subarray(0, at), bytesOf(random, size(random)), bytes.subarray(at)]);
  for (let count = 1 + random() * 8; count > 0; count--) bytes[Math.floor(random() * bytes.length)] = random() * 256;
  return bytes;
}

/** Of any type and version, with a ClientHello's begin in some. */
function tlsRecord(random: Random): Buffer {
  const hello = Buffer.concat([Buffer.from([1, 0, 0, 200, 3, 3]), bytesOf(random, 32), bytesOf(random, 168)]);
  const body = random() < 0.5 ? hello : bytesOf(random, size(random));
  const header = Buffer.from([pick(random, [20, 21, 22, 22, 22, 23, 24, 255]), 3, pick(random, [0, 1, 3, 4]), 0, 0]);
  header.writeUInt16BE(random() < 0.8 ? body.length : Math.floor(random() * 65_536), 3);
  return Buffer.concat([header, body]);
}

const PATHS = [
  "/healthz",
  "/metrics",
  "/readyz",
  "/validate",
  "/inject/foo-system/foo-operator",
  "/api/v1/configmaps",
  "*",
  "/%00",
  "//",
  "h:1",
];
const HEADERS = [
  "transfer-encoding: chunked",
  "transfer-encoding: chunked, gzip",
  "content-length: 5",
  "content-length: 18446744073709551616",
  "expect: 100-continue",
  "connection: upgrade",
  "upgrade: websocket",
  "authorization: Bearer a.b.c",
  "content-type: application/json",
  "content-encoding: gzip",
  "host: x",
  "accept: application/vnd.kubernetes.protobuf",
  ": empty",
  " folded",
];
const BODIES = [
  "",
  "{}",
  "[[[",
  "5\r\nhello\r\n0\r\n\r\n",
  "ffffffffffffffff\r\n",
  review({ object: { metadata: { name: "x" } } }),
];

function request(random: Random): string {
  if (random() < 0.2) return head(pick(random, PATHS), Math.floor(random() * 1e9)) + pick(random, BODIES);
  const method = pick(random, ["GET", "POST", "DELETE", "PATCH", "CONNECT", "OPTIONS", "PRI", "get", "\u0000"]);
  const lines = Array.from({ length: random() * 6 }, () => `${pick(random, HEADERS)}\r\n`).join("");
  return `${method} ${pick(random, PATHS)} HTTP/${pick(random, ["1.1", "1.1", "1.0", "2.0", "9"])}\r\n${lines}\r\n${pick(random, BODIES)}`;
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** POST / over https, with names and values of the static table. */
const HEADER_BLOCK = Buffer.from([0x83, 0x84, 0x87]);

function http2(random: Random): Buffer {
  const frames = Array.from({ length: 1 + random() * 6 }, () => frame(random));
  return Buffer.concat([...(random() < 0.8 ? [PREFACE, settings()] : []), ...frames]);
}

function settings(): Buffer {
  return Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
}

function frame(random: Random): Buffer {
  const type = Math.floor(random() * 12);
  const payload = type === 1 && random() < 0.7 ? HEADER_BLOCK : bytesOf(random, Math.min(size(random), 1_000));
  const header = Buffer.alloc(9);
  header.writeUIntBE(random() < 0.9 ? payload.length : Math.floor(random() * 2 ** 24), 0, 3);
  header[3] = type;
  header[4] = pick(random, [0, 1, 4, 5, 8, 0x20, 255]);
  header.writeUInt32BE(pick(random, [0, 1, 1, 3, 5, 2, 2 ** 31 - 1]), 5);
  return Buffer.concat([header, payload]);
}

const POD = { namespace: "tenant", name: "fake-0", uid: "", token: "" };
const PROXY_MESSAGES: readonly ProxyMessage[] = [
  registrationWith(POD, tableOf("small")),
  { promise: { epoch: 2 ** 40, tables: [tableOf("small").bytes] } },
  { ack: { type: "routes", nonce: 1, version: 2 ** 50 } },
  { nack: { type: "policy", nonce: 0, version: 1, problems: ["a", "\u0000"], needsWhole: true } },
  { report: { backlog: { heldNamespaces: 4_294_967_295, drainingWrites: 1 } } },
  { report: { webhookProblem: "x".repeat(5_000) } },
  {
    report: {
      clusters: { unreachable: Array.from({ length: 500 }, () => ({ cluster: "\n".repeat(999), reason: "x".repeat(5_000) })) },
    },
  },
];

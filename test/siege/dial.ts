// The connections of attackers: from an address of theirs, with or without TLS, as slow as they like.
// Invariant: a visit never rejects, never checks a certificate, and leaves no connection open when the attack
// is over.
import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Endpoint } from "./attack.ts";

export interface Caller {
  readonly from: string;
  readonly signal: AbortSignal;
}

export interface DialOptions {
  /** Finishes a TLS handshake; the default is true. */
  readonly secure?: boolean;
  /** Default: none. */
  readonly alpn?: readonly string[];
}

/** How long a victim may leave a handshake unanswered. */
const HANDSHAKE_MS = 15_000;
/** Without a chosen size of its own, a socket would keep every byte that a victim never reads. */
const CHUNK_BYTES = 256 * 1024;

/** Undefined if the victim refuses, cuts off, or does not answer the handshake. */
export async function dial(
  { from, signal }: Caller,
  { host, port }: Endpoint,
  { secure = true, alpn = [] }: DialOptions = {},
): Promise<Socket | undefined> {
  if (signal.aborted) return undefined;
  const plain = connectTcp({ host, port, localAddress: from, noDelay: true });
  const socket = secure
    ? connectTls({ socket: plain, rejectUnauthorized: false, servername: "localhost", ALPNProtocols: [...alpn] })
    : plain;
  const stop = () => plain.destroy();
  for (const each of new Set([plain, socket])) each.on("error", stop);
  signal.addEventListener("abort", stop, { once: true });
  plain.once("close", () => signal.removeEventListener("abort", stop));
  const timer = setTimeout(stop, HANDSHAKE_MS);
  const isUp = await new Promise<boolean>((resolve) => {
    socket.once(secure ? "secureConnect" : "connect", () => resolve(true));
    plain.once("close", () => resolve(false));
  });
  clearTimeout(timer);
  return isUp ? socket : undefined;
}

export interface Talk {
  /** What is sent, one part after the other. */
  readonly parts?: Iterable<Buffer | string>;
  /** Time between two parts; the default is 0. */
  readonly everyMs?: number;
  /** How long the caller then waits for an answer or the end. */
  readonly holdMs: number;
}

/**
 * Sends the parts and waits.
 * @returns the status of an HTTP answer, "cut off", or "kept" if the victim let it be
 */
export async function talk(socket: Socket, { parts = [], everyMs = 0, holdMs }: Talk): Promise<string> {
  let head = "";
  const over = new Promise<void>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      if (head.length < 64) head += chunk.subarray(0, 64).toString("latin1");
      if (/^HTTP\/1\.1 \d{3}/.test(head)) resolve();
    });
    socket.once("end", resolve);
    socket.once("close", resolve);
  });
  const held = sleep(holdMs, undefined, { ref: false });
  const sending = send(socket, parts, everyMs);
  await Promise.race([over, sending.then(() => Promise.race([over, held]))]);
  const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1];
  const end = socket.destroyed || socket.readableEnded ? "cut off" : "kept";
  socket.destroy();
  return status ?? end;
}

async function send(socket: Socket, parts: Iterable<Buffer | string>, everyMs: number): Promise<void> {
  for (const part of parts) {
    const bytes = Buffer.from(part);
    for (let at = 0; at < bytes.length || at === 0; at += CHUNK_BYTES) {
      if (socket.destroyed) return;
      if (!socket.write(bytes.subarray(at, at + CHUNK_BYTES))) await drained(socket);
    }
    if (everyMs > 0) await sleep(everyMs);
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
  });
}

/** Both in one. @returns "refused" if there was no connection */
export async function visit(caller: Caller, endpoint: Endpoint, options: DialOptions & Talk): Promise<string> {
  const socket = await dial(caller, endpoint, options);
  return socket === undefined ? "refused" : talk(socket, options);
}

// Reads the name of the server from a TLS client's first message (RFC 8446 section 4.1.2, RFC 6066 section
// 3), and judges whether a tunnel may carry it. Pure. Invariants: it never throws, reads at most
// MAX_HELLO_BYTES and decrypts nothing; the message may come in any number of records.
import { isIP } from "node:net";
import type { EgressResult } from "./egress-error.ts";

export type ClientHello =
  | { readonly kind: "incomplete" }
  /** No TLS, longer than any real ClientHello, or with several names, which RFC 6066 forbids. */
  | { readonly kind: "not-tls" }
  /** `serverName` in lower case; undefined if the client names none. */
  | { readonly kind: "hello"; readonly serverName: string | undefined };

/** Key shares of post-quantum groups take 2 KB, and tickets as much. No client sends half of this bound. */
export const MAX_HELLO_BYTES = 32_768;

const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
/** RFC 8446 section 5.1. */
const MAX_RECORD_BYTES = 16_384;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const SERVER_NAME_EXTENSION = 0;
const HOST_NAME = 0;

export function readClientHello(bytes: Buffer): ClientHello {
  const message = messageOf(bytes);
  if (message === "not-tls" || (message === "incomplete" && bytes.length >= MAX_HELLO_BYTES)) return { kind: "not-tls" };
  if (message === "incomplete") return { kind: "incomplete" };
  try {
    return { kind: "hello", serverName: serverNameOf(new Fields(message)) };
  } catch {
    return { kind: "not-tls" };
  }
}

/** Why the tunnel to `host` is closed, or undefined. @param isAllowList only listed servers may be called */
export function serverNameProblem(
  hello: Exclude<ClientHello, { kind: "incomplete" }>,
  host: string,
  isAllowList: boolean,
): Extract<EgressResult, "no-tls" | "sni-mismatch" | "no-sni"> | undefined {
  if (hello.kind === "not-tls") return "no-tls";
  if (hello.serverName !== undefined) return hello.serverName === host ? undefined : "sni-mismatch";
  // Clients name no addresses (RFC 6066 section 3). The rules have judged the address itself.
  return isIP(host) === 0 && isAllowList ? "no-sni" : undefined;
}

function messageOf(bytes: Buffer): Buffer | "incomplete" | "not-tls" {
  const parts: Buffer[] = [];
  let haveBytes = 0;
  let wanted: number | undefined;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.length < at + RECORD_HEADER ? undefined : bytes.readUInt16BE(at + 3);
    // The first byte tells other protocols apart.
    if (bytes[at] !== HANDSHAKE_RECORD || (bytes[at + 1] ?? 3) !== 3 || length === 0) return "not-tls";
    if (length === undefined) return "incomplete";
    if (length > MAX_RECORD_BYTES) return "not-tls";
    const part = bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length);
    parts.push(part);
    haveBytes += part.length;
    if (wanted === undefined && haveBytes >= MESSAGE_HEADER) {
      const head = Buffer.concat(parts);
      wanted = MESSAGE_HEADER + head.readUIntBE(1, 3);
      if (head[0] !== CLIENT_HELLO || wanted > MAX_HELLO_BYTES) return "not-tls";
    }
    if (wanted !== undefined && haveBytes >= wanted) return Buffer.concat(parts).subarray(MESSAGE_HEADER, wanted);
    at += RECORD_HEADER + length;
  }
  return "incomplete";
}

function serverNameOf(hello: Fields): string | undefined {
  hello.skip(2 + 32); // version and random
  hello.list(1); // session
  hello.list(2); // cipher suites
  hello.list(1); // compression
  if (hello.isEmpty) return undefined;
  const extensions = hello.list(2);
  const names: string[] = [];
  while (!extensions.isEmpty) {
    const type = extensions.number(2);
    const content = extensions.list(2);
    if (type === SERVER_NAME_EXTENSION) names.push(...hostNamesOf(content.list(2)));
  }
  // Servers differ in which one they take.
  if (names.length > 1) throw new RangeError("more than one name");
  return names[0];
}

function hostNamesOf(list: Fields): string[] {
  const names: string[] = [];
  while (!list.isEmpty) {
    const type = list.number(1);
    const name = list.list(2);
    if (type === HOST_NAME) names.push(name.text().toLowerCase().replace(/\.$/, ""));
  }
  return names;
}

/** Reads fields one after the other. @throws RangeError beyond the end */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#bytes.length;
  }

  skip(bytes: number): void {
    this.#take(bytes);
  }

  number(bytes: number): number {
    return this.#take(bytes).readUIntBE(0, bytes);
  }

  /** Reads a length of so many bytes, and then the bytes that it counts. */
  list(lengthBytes: number): Fields {
    return new Fields(this.#take(this.number(lengthBytes)));
  }

  text(): string {
    return this.#bytes.toString("latin1");
  }

  #take(bytes: number): Buffer {
    if (this.#at + bytes > this.#bytes.length) throw new RangeError("beyond the end");
    this.#at += bytes;
    return this.#bytes.subarray(this.#at - bytes, this.#at);
  }
}

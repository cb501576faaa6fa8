// Raw HTTP/1.1 over TLS. It sends exactly the given bytes (header case, repeated headers, chunks, odd targets) and parses the
// answer without a library. So a test can compare a direct and a proxied answer.
import { connect, type TLSSocket } from "node:tls";

export interface RawTarget {
  readonly url: string;
  readonly caPem: string;
  /** Sent as Authorization, unless the request has its own. */
  readonly token: string;
}

export interface RawRequest {
  readonly method?: string;
  /** The request target, exactly as in the request line. */
  readonly target: string;
  /** Sent in this order and case. Missing Host, Authorization and body length are added. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | Uint8Array;
  /** Sends the body in chunks of this many bytes instead of with a length. */
  readonly chunkBytes?: number;
  /** Waits for `100 Continue` before the body. */
  readonly expectContinue?: boolean;
  /** Sends no Authorization. */
  readonly anonymous?: boolean;
}

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case, in the order of arrival. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The body without chunk framing. */
  readonly body: Buffer;
  /** False if the connection ended before the end of the body. */
  readonly whole: boolean;
  /** Interim responses before this one, such as 100. */
  readonly interim: readonly number[];
}

/** A connection that records all bytes. */
export interface RawConnection {
  readonly socket: TLSSocket;
  /** All bytes received so far. */
  received(): Buffer;
  /** Resolves at the end: FIN, or an error with `reset` true. */
  readonly ended: Promise<{ readonly reset: boolean }>;
  /** Resolves once `check` accepts the received bytes. @throws Error if the connection ends before */
  until<T>(check: (received: Buffer) => T | undefined): Promise<T>;
}

/** Opens a connection for one or more requests. */
export async function openRaw({ url, caPem }: Pick<RawTarget, "url" | "caPem">): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ca: caPem, ALPNProtocols: ["http/1.1"] });
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", resolve).once("error", reject);
  });
  const chunks: Buffer[] = [];
  const waiting = new Set<() => void>();
  let over: { reset: boolean } | undefined;
  const wake = () => {
    for (const each of [...waiting]) each();
  };
  const ended = new Promise<{ reset: boolean }>((resolve) => {
    const finish = (reset: boolean) => {
      over ??= { reset };
      resolve(over);
      wake();
    };
    socket.on("error", () => finish(true));
    socket.once("end", () => finish(false));
    socket.once("close", () => finish(true));
  });
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    wake();
  });
  const received = () => {
    const all = Buffer.concat(chunks);
    chunks.splice(0, chunks.length, all);
    return all;
  };
  return {
    socket,
    received,
    ended,
    until: (check) =>
      new Promise((resolve, reject) => {
        const poll = () => {
          const found = check(received());
          if (found === undefined && over === undefined) return;
          waiting.delete(poll);
          if (found !== undefined) resolve(found);
          else reject(new Error(`the connection ended; received ${received().toString("latin1").slice(-500)}`));
        };
        waiting.add(poll);
        poll();
      }),
  };
}

/** Sends one request on a new connection and reads the answer to its end. */
export async function sendRaw(target: RawTarget, request: RawRequest): Promise<RawAnswer> {
  const connection = await openRaw(target);
  try {
    const { head, body } = encodeRequest(target, request);
    connection.socket.write(head);
    if (request.expectContinue) {
      const goOn = await connection.until((bytes) => {
        if (bytes.toString("latin1", 0, 12) === "HTTP/1.1 100") return true;
        return parseAnswer(bytes, request.method, false) === undefined ? undefined : false;
      });
      if (goOn) connection.socket.write(body);
    } else connection.socket.write(body);
    return await readAnswer(connection, request.method);
  } finally {
    connection.socket.destroy();
  }
}

/** The answer that begins at byte `from` of the received bytes, once it is complete or the connection has ended. */
export async function readAnswer(connection: RawConnection, method = "GET", from = 0): Promise<RawAnswer> {
  let over = false;
  void connection.ended.then(() => {
    over = true;
  });
  const isComplete = (bytes: Buffer) => {
    const answer = parseAnswer(bytes.subarray(from), method, over);
    return answer?.whole || over ? answer : undefined;
  };
  return connection.until(isComplete).catch(async (cause: Error) => {
    await connection.ended;
    const answer = parseAnswer(connection.received().subarray(from), method, true);
    if (answer === undefined) throw cause;
    return answer;
  });
}

/** The bytes of a request. */
export function encodeRequest({ url, token }: RawTarget, request: RawRequest): { head: Buffer; body: Buffer } {
  const { method = "GET", target, headers = [], anonymous = false, expectContinue = false } = request;
  const has = (name: string) => headers.some(([each]) => each.toLowerCase() === name);
  const plain = request.body === undefined ? Buffer.alloc(0) : Buffer.from(request.body);
  const lines = [`${method} ${target} HTTP/1.1`];
  if (!has("host")) lines.push(`Host: ${new URL(url).host}`);
  if (!anonymous && !has("authorization")) lines.push(`Authorization: Bearer ${token}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  if (expectContinue) lines.push("Expect: 100-continue");
  if (request.chunkBytes !== undefined) lines.push("Transfer-Encoding: chunked");
  else if (request.body !== undefined) lines.push(`Content-Length: ${plain.length}`);
  const body = request.chunkBytes === undefined ? plain : inChunks(plain, request.chunkBytes);
  return { head: Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body };
}

function inChunks(bytes: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

/**
 * Parses an answer.
 * @param over true if the connection has ended, which completes a body without length
 * @returns undefined until the head is complete
 */
export function parseAnswer(bytes: Buffer, method = "GET", over = true): (RawAnswer & { readonly nextAt: number }) | undefined {
  const interim: number[] = [];
  let at = 0;
  for (;;) {
    const end = bytes.indexOf("\r\n\r\n", at, "latin1");
    if (end < 0) return undefined;
    const [first = "", ...lines] = bytes.toString("latin1", at, end).split("\r\n");
    at = end + 4;
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1]);
    if (status >= 100 && status < 200 && status !== 101) {
      interim.push(status);
      continue;
    }
    const headers = lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    });
    const { body, whole, nextAt } = readBody(bytes, at, headers, method === "HEAD" || status === 204 || status === 304, over);
    return { status, headers, body, whole, interim, nextAt };
  }
}

function readBody(
  bytes: Buffer,
  at: number,
  headers: readonly (readonly [string, string])[],
  empty: boolean,
  over: boolean,
): { body: Buffer; whole: boolean; nextAt: number } {
  const header = (name: string) => headers.find(([each]) => each === name)?.[1];
  if (empty) return { body: Buffer.alloc(0), whole: true, nextAt: at };
  const length = header("content-length");
  if (length !== undefined) {
    const nextAt = at + Number(length);
    return { body: bytes.subarray(at, nextAt), whole: bytes.length >= nextAt, nextAt };
  }
  if (header("transfer-encoding") !== "chunked") return { body: bytes.subarray(at), whole: over, nextAt: bytes.length };
  const parts: Buffer[] = [];
  for (;;) {
    const line = bytes.indexOf("\r\n", at, "latin1");
    const size = line < 0 ? Number.NaN : Number.parseInt(bytes.toString("latin1", at, line), 16);
    const from = line + 2;
    const missing = Number.isNaN(size) || bytes.length < from + size + 2;
    if (!Number.isNaN(size)) parts.push(bytes.subarray(from, Math.min(bytes.length, from + size)));
    if (missing) return { body: Buffer.concat(parts), whole: false, nextAt: bytes.length };
    at = from + size + 2;
    if (size === 0) return { body: Buffer.concat(parts), whole: true, nextAt: at };
  }
}

// A probe client: plain HTTPS to a proxy or to the API server. It keeps every received byte, so that a test can prove which
// objects did not pass.
import { Agent, request } from "undici";

export interface ProbeTarget {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
  /** Keeps every byte for `received`; the default is true. */
  readonly keep?: boolean;
}

export interface ProbeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** An open stream that records its bytes. */
export interface ProbeStream {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: () => Buffer;
  readonly ended: () => boolean;
  readonly close: () => void;
}

export interface Probe {
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<ProbeAnswer>;
  /** Bytes are sent unchanged, other values as JSON. */
  send(
    method: "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<ProbeAnswer>;
  stream(path: string, headers?: Readonly<Record<string, string>>): Promise<ProbeStream>;
  /** All received bytes, for searching. */
  received(): Buffer;
  close(): Promise<void>;
}

export function createProbe({ url, caPem, token, keep = true }: ProbeTarget): Probe {
  // A suspended proxy does not complete a handshake before it goes on.
  const dispatcher = new Agent({ connect: { ca: caPem, timeout: 60_000 }, headersTimeout: 60_000, bodyTimeout: 0 });
  const kept: Buffer[] = [];
  const ask = (method: string, path: string, headers: Readonly<Record<string, string>>, body?: string | Uint8Array) =>
    request(`${url}${path}`, {
      method: method as "GET",
      dispatcher,
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  const whole = async (answer: Awaited<ReturnType<typeof request>>): Promise<ProbeAnswer> => {
    const body = Buffer.from(await answer.body.arrayBuffer());
    if (keep) kept.push(body);
    return { status: answer.statusCode, headers: answer.headers, body };
  };
  return {
    get: async (path, headers = {}) => whole(await ask("GET", path, headers)),
    send: async (method, path, body, headers = {}) => {
      const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
      const text = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body);
      return whole(await ask(method, path, { ...(text === undefined ? {} : { "content-type": type }), ...headers }, text));
    },
    async stream(path, headers = {}) {
      const answer = await ask("GET", path, headers);
      const chunks: Buffer[] = [];
      let ended = false;
      const done = () => {
        ended = true;
      };
      answer.body.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        kept.push(chunk);
      });
      answer.body.on("end", done).on("error", done);
      const contentType = String(answer.headers["content-type"]);
      const bytes = () => Buffer.concat(chunks);
      return { status: answer.statusCode, contentType, bytes, ended: () => ended, close: () => void answer.body.destroy() };
    },
    received: () => Buffer.concat(kept),
    close: () => dispatcher.destroy(),
  };
}

// Sends load to one address over several connections, with one request after the other on each. The client is
// undici, which costs little compared with the measured proxy.
import { performance } from "node:perf_hooks";
import { Pool } from "undici";
import type { Endpoint } from "./world.ts";

/**
 * Both sides use the same protocol. Otherwise undici would use HTTP/2 only with the API server, which costs
 * the server more.
 */
export const HTTP1 = { allowH2: false, pipelining: 1 } as const;

/** How much of an answer's end is searched for its last text. */
const END_BYTES = 1_000;

export interface Request {
  readonly method: "GET" | "PATCH";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called for each request. */
  readonly body?: () => string;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  /** The response time of each request, in milliseconds. */
  readonly times: readonly number[];
}

/** Keeps `connections` requests running for `durationMs`. @throws Error on any answer but 200 */
export async function load(
  { url, caPem, token }: Endpoint,
  { method, path, headers = {}, body }: Request,
  { connections, durationMs }: { readonly connections: number; readonly durationMs: number },
): Promise<LoadResult> {
  const pool = new Pool(url, { ...HTTP1, connections, connect: { ca: caPem } });
  const times: number[] = [];
  const ask = async () => {
    const authorized = { authorization: `Bearer ${token}`, ...headers };
    const answer = await pool.request({ method, path, headers: authorized, body: body?.() ?? null });
    await answer.body.arrayBuffer();
    if (answer.statusCode !== 200) throw new Error(`${method} ${path} at ${url}: ${answer.statusCode}`);
  };
  // The first requests include the handshakes, so they are not measured.
  await Promise.all(Array.from({ length: connections }, ask));
  const end = performance.now() + durationMs;
  const worker = async () => {
    while (performance.now() < end) {
      const start = performance.now();
      await ask();
      times.push(performance.now() - start);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - started) / 1000;
  await pool.close();
  return { requestsPerSecond: times.length / seconds, times };
}

/**
 * Reads one answer and discards it. @throws Error on any answer but 200
 * @param last reads until this text has come. By default to the end of the answer
 * @returns the number of bytes
 */
export async function drain({ url, caPem, token }: Endpoint, path: string, accept: string, last?: string): Promise<number> {
  const pool = new Pool(url, { ...HTTP1, connections: 1, connect: { ca: caPem }, bodyTimeout: 0, headersTimeout: 0 });
  try {
    const answer = await pool.request({ method: "GET", path, headers: { authorization: `Bearer ${token}`, accept } });
    let bytes = 0;
    let end = Buffer.alloc(0);
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (last === undefined) continue;
      end = Buffer.concat([end, chunk.subarray(-END_BYTES)]).subarray(-END_BYTES);
      if (end.includes(last)) break;
    }
    if (answer.statusCode !== 200) throw new Error(`GET ${path} at ${url}: ${answer.statusCode}`);
    return bytes;
  } finally {
    await pool.destroy();
  }
}

// A transport that gets its responses from a function instead of the network, and records the requests.
import { Readable } from "node:stream";
import type { Transport, TransportRequest, TransportResponse } from "../../src/kube/client/transport.ts";

export interface FakeAnswer {
  readonly statusCode?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string, a value to send as JSON, or a stream of chunks. */
  readonly body?: unknown;
}

export interface FakeTransport extends Transport {
  readonly requests: TransportRequest[];
}

/** @param answer returns the answer to a request, or throws */
export function createFakeTransport(
  answer: (request: TransportRequest, index: number) => FakeAnswer | Promise<FakeAnswer>,
): FakeTransport {
  const requests: TransportRequest[] = [];
  return {
    requests,
    async send(request) {
      request.signal.throwIfAborted();
      requests.push(request);
      const { statusCode = 200, headers = {}, body = "" } = await answer(request, requests.length - 1);
      return { statusCode, headers: { "content-type": "application/json", ...headers }, body: bodyOf(body, request.signal) };
    },
    async close() {},
  };
}

function bodyOf(body: unknown, signal: AbortSignal): TransportResponse["body"] {
  const stream =
    body instanceof Readable ? body : Readable.from([Buffer.from(typeof body === "string" ? body : JSON.stringify(body))]);
  signal.addEventListener("abort", () => stream.destroy(new Error("aborted")), { once: true });
  const text = async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString("utf8");
  };
  return Object.assign(stream, {
    text,
    json: async () => JSON.parse(await text()) as unknown,
  }) as unknown as TransportResponse["body"];
}

/** A stream that a test writes to, for a watch. */
export function createChunkStream(): {
  readonly body: Readable;
  push(text: string): void;
  end(): void;
  fail(error: Error): void;
} {
  const body = new Readable({ read() {} });
  return { body, push: (text) => body.push(Buffer.from(text)), end: () => body.push(null), fail: (error) => body.destroy(error) };
}

// Calls one layer in tests: takes a request line and returns the reply and the call that the layer sent on.

import { parseRequestInfo } from "../../src/kube/request-info.ts";
import type { Call, Handler, Layer } from "../../src/proxy/call/call.ts";
import { readBody } from "../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../src/proxy/http/handler.ts";

export interface CallOptions {
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
  readonly upgrade?: string;
}

export function callOf(method: string, target: string, options: CallOptions = {}): Call {
  const { headers = {}, body, signal = new AbortController().signal, upgrade } = options;
  return {
    method,
    target,
    headers,
    info: parseRequestInfo(method, target, upgrade),
    body: body === undefined ? null : Buffer.from(body),
    signal,
    record: { decision: "forwarded", lock: false },
    ...(upgrade === undefined ? {} : { upgrade }),
  };
}

export interface FakeUpstream extends Handler {
  /** The calls so far, oldest first. */
  readonly calls: Call[];
  /** Receives each call before its answer. */
  onCall?: (call: Call) => unknown;
}

/** How the API server answers an upgrade: with the intent to connect the two sockets. */
export function upgraded(call: Call): Reply {
  return { status: 101, headers: {}, body: null, tunnel: call };
}

/** An upstream that responds to every call with the result of `answer`. */
export function fakeUpstream(answer: (call: Call) => Reply | Promise<Reply>): FakeUpstream {
  const calls: Call[] = [];
  const handler: Handler = async (call) => {
    calls.push(call);
    upstream.onCall?.(call);
    return answer(call);
  };
  const upstream: FakeUpstream = Object.assign(handler, { calls });
  return upstream;
}

export function jsonReply(value: unknown, status = 200): Reply {
  const body = Buffer.from(JSON.stringify(value));
  return { status, headers: { "content-type": "application/json", "content-length": String(body.length) }, body };
}

/** The reply's body as text. */
export async function textOf(reply: Reply): Promise<string> {
  return Buffer.from(await readBody(reply.body, 1 << 24)).toString("utf8");
}

/** The names in a JSON list or of a single object. */
export async function namesOf(reply: Reply): Promise<string[]> {
  const value = JSON.parse(await textOf(reply)) as { items?: { metadata: { name: string } }[]; metadata?: { name: string } };
  return value.items?.map((item) => item.metadata.name) ?? [value.metadata?.name ?? ""];
}

/** The namespace/name of each object in a JSON list. */
export async function keysOf(reply: Reply): Promise<string[]> {
  const { items } = JSON.parse(await textOf(reply)) as { items: { metadata: { namespace: string; name: string } }[] };
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

export function through(layer: Layer, upstream: Handler): Handler {
  return layer(upstream);
}

/** The status code that a client gets for a watch: that of the error event, if the reply is not a stream. */
export function watchCode({ status, body }: Reply): number {
  if (!(body instanceof Uint8Array)) return status;
  const event = JSON.parse(Buffer.from(body).toString("utf8")) as { type?: string; object?: { code?: number } };
  return event.type === "ERROR" ? (event.object?.code ?? 0) : status;
}

// Calls and replies whose bodies the proxy reads. Invariant: fails closed: a successful reply that cannot be
// read is refused, never passed.

import type { Encoding } from "../../kube/codec/codec.ts";
import { encodingOf, narrowAccept } from "../../kube/codec/content-negotiation.ts";
import { StatusError } from "../../kube/status.ts";
import { asSource, type ByteSource, discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { type Call, withParameter } from "./call.ts";

/** The call with a reply that the proxy can read: uncompressed, as JSON or protobuf. */
export function askUncompressed(call: Call): Call {
  return { ...call, headers: { ...call.headers, accept: narrowAccept(call.headers.accept), "accept-encoding": "identity" } };
}

/** The same, with metadata in each row of a Table: they say who owns the row. */
export function askReadable(call: Call): Call {
  const asked = askUncompressed(call);
  return call.info.query.get("includeObject") === "None" ? withParameter(asked, "includeObject", "Metadata") : asked;
}

/** The same for a list or a watch. Its body has no meaning, and nobody could send the body twice. */
export function askReadableCollection(call: Call): Call {
  discardBody(call.body);
  const { "content-length": _length, "transfer-encoding": _coding, "content-type": _type, ...headers } = call.headers;
  return askReadable({ ...call, headers, body: null });
}

/** The encoding of the reply's body; undefined if it cannot be read (another type, or compressed). */
export function readableEncoding({ headers }: Reply): Encoding | undefined {
  const coding = headers["content-encoding"];
  if (coding !== undefined && coding !== "identity") return undefined;
  const type = headers["content-type"];
  const encoding = encodingOf(typeof type === "string" ? type : "");
  return encoding === "json" || encoding === "protobuf" ? encoding : undefined;
}

/**
 * The reply to a list or watch with its body filtered. Errors pass as they are.
 * @throws StatusError NotAcceptable
 */
export function filterReply({ method }: Call, reply: Reply, filter: (body: ByteSource, encoding: Encoding) => ByteSource): Reply {
  if (reply.status >= 300) return reply;
  const { "content-length": _, etag: _tag, ...headers } = reply.headers;
  if (method === "HEAD" && reply.body === null) return { ...reply, headers };
  const encoding = readableEncoding(reply);
  if (encoding === undefined || reply.status !== 200 || reply.body === null) {
    discardBody(reply.body);
    const what = `status ${reply.status}, content type ${String(reply.headers["content-type"] ?? "none")}`;
    throw new StatusError("NotAcceptable", `ctrlmesh: the API server's reply cannot be filtered (${what})`);
  }
  return { ...reply, headers, body: filter(asSource(reply.body), encoding) };
}

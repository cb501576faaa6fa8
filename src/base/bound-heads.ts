// Judges the head of each request before Node makes anything of it. Invariant: after a refusal nothing more
// of the connection is parsed. Node itself goes on with all that it has read, also after the end of the
// socket: it makes a request and a response of 10 KB of each 26 bytes. It has no public way to stop that, so
// this file uses an internal one, which pipelines.test.ts holds. Used by guard-connections.ts.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/**
 * "no-length": refused because the length of its body is not given. A body in chunks of one byte takes a
 * hundred times as long as it is.
 */
export type HeadVerdict = "serve" | "cut" | "no-length";

/** What Node calls for each head. */
type OnIncoming = (req: IncomingMessage, shouldKeepAlive: boolean) => number;

interface ParserOf {
  readonly parser?: { onIncoming: OnIncoming } | null;
}

/** For Node's parser: what follows is no HTTP. */
const END_OF_HTTP = 2;
const REASON = "ctrlmesh: a request with a body needs a Content-Length\n";
const LENGTH_REQUIRED = `HTTP/1.1 411 Length Required\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${REASON.length}\r\n\r\n${REASON}`;

/** Call it when Node has given the connection its parser. Does nothing before that. */
export function boundHeads(socket: Socket, judge: (req: IncomingMessage) => HeadVerdict): void {
  const { parser } = socket as ParserOf;
  if (!parser) return;
  const makeRequest = parser.onIncoming;
  parser.onIncoming = (req, shouldKeepAlive) => {
    const verdict = judge(req);
    if (verdict === "serve") return makeRequest(req, shouldKeepAlive);
    parser.onIncoming = () => END_OF_HTTP;
    if (verdict === "no-length") socket.end(LENGTH_REQUIRED, () => socket.destroy());
    else socket.destroy();
    return END_OF_HTTP;
  };
}

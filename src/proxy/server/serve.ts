// Serves one request: the request becomes a call for the stack, and the reply becomes bytes. Invariants:
// nothing of a body is read before a layer opens it, so that a refused upload costs no memory. A body that
// breaks off destroys the connection, so that it never looks complete. A full socket pauses the source.
import { type IncomingHttpHeaders, type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { type ByteSink, type ByteSource, discardBody } from "../http/byte-stream.ts";
import type { CallNotes, Handler, HttpCall, Reply } from "../http/handler.ts";
import type { InFlight } from "./in-flight.ts";

export type MayUpgrade = (method: string, target: string) => boolean;

export interface ServeOptions<Notes extends CallNotes> {
  readonly stack: Handler<HttpCall<Notes>, Reply>;
  /** Creates the notes of a new call of this client: the call's `record`. */
  readonly createRecord: (client: Duplex) => Notes;
  /** Absent: the server ignores every upgrade, as RFC 9110 allows. */
  readonly mayUpgrade?: MayUpgrade;
  readonly log: Logger;
  /** Bounds for a listener that every pod of the cluster can reach. Default: none. */
  readonly strangers?: Strangers;
  /** How long a client may read nothing of its answer. Default 60,000; 10,000 for strangers. */
  readonly stalledMs?: number;
}

export interface Strangers {
  /** How many connections may be open at a time. */
  readonly maxConnections: number;
  /** False for an address that has caused too much work of late. */
  readonly mayConnect: (address: string) => boolean;
}

export const STALLED_MS = 60_000;
const STRANGERS_STALLED_MS = 10_000;

export async function serve<Notes extends CallNotes>(
  req: IncomingMessage,
  res: ServerResponse,
  expectsContinue: boolean,
  options: ServeOptions<Notes>,
  inFlight: InFlight<Notes>,
): Promise<void> {
  const { stack, createRecord } = options;
  if (req.socket.destroyed) return; // as guardConnections needs it (base/guard-connections.ts)
  if (req.httpVersion !== "1.1") {
    // HTTP/1.0 knows no chunks: there a body that broke off would look complete.
    res.writeHead(505, { connection: "close" }).end();
    return;
  }
  const body = hasBody(req) ? requestSource(req, () => expectsContinue && res.writeContinue()) : null;
  const { method = "GET", url: target = "", socket } = req;
  const running = inFlight.begin({ method, target, headers: headersOf(req), body, record: createRecord(socket) });
  res.once("close", () => running.end(!res.writableFinished));
  const reply = await stack(running.call);
  if (inFlight.draining) res.shouldKeepAlive = false;
  const { endAfterMs } = running.call.record;
  if (endAfterMs !== undefined) running.endAfter(endAfterMs);
  boundReading(res, reply, target, options);
  sendReply(res, reply);
}

export async function serveUpgrade<Notes extends CallNotes>(
  req: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { stack, createRecord, mayUpgrade }: ServeOptions<Notes>,
  inFlight: InFlight<Notes>,
): Promise<void> {
  const { method = "GET", url: target = "" } = req;
  const upgrade = upgradeOf(req, mayUpgrade) ?? "";
  const record = createRecord(socket);
  const running = inFlight.begin({ method, target, headers: headersOf(req), body: null, upgrade, record });
  socket.once("close", () => running.end(true));
  const reply = await stack(running.call);
  const { tunnel, connect } = reply;
  if (tunnel !== undefined && connect !== undefined) await connect(tunnel, req, socket, head);
  else refuseUpgrade(req, socket as Socket, reply);
}

function refuseUpgrade(req: IncomingMessage, socket: Socket, reply: Reply): void {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.once("finish", () => socket.destroySoon());
  sendReply(res, reply);
}

/** The protocol of a request that must become a tunnel. Other upgrades are ignored (RFC 9110). */
export function upgradeOf(
  { method = "GET", url = "", headers: { upgrade } }: IncomingMessage,
  mayUpgrade: MayUpgrade | undefined,
): string | undefined {
  if (upgrade === undefined || !/^(websocket|spdy\/3\.1)$/i.test(upgrade)) return undefined;
  return mayUpgrade?.(method, url) ? upgrade : undefined;
}

/**
 * Node joins the lines of a header with commas. The headers that begin with `impersonate-` have one value for
 * each line instead, so that two Impersonate-Group lines stay two groups.
 */
function headersOf(req: IncomingMessage): IncomingHttpHeaders {
  const { headers } = req;
  if (!Object.keys(headers).some((name) => name.startsWith("impersonate-"))) return headers;
  const out: IncomingHttpHeaders = { ...headers };
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    if (name.startsWith("impersonate-") && values !== undefined) out[name] = values;
  }
  return out;
}

function hasBody({ headers }: IncomingMessage): boolean {
  if (headers["transfer-encoding"] !== undefined) return true;
  const length = headers["content-length"];
  return length !== undefined && length !== "0";
}

/** @param sendContinue called once, when a layer opens the body */
function requestSource(req: IncomingMessage, sendContinue: () => void): ByteSource {
  return {
    open(sink) {
      let isOver = false;
      const onBroken = () => {
        if (isOver) return;
        isOver = true;
        sink.abort(new MeshError("REQUEST_BODY_BROKEN", "reading the request's body: the client broke it off"));
      };
      sendContinue();
      req.on("data", (chunk: Buffer) => {
        const takesMore = isOver || sink.write(chunk);
        if (!takesMore && !isOver) req.pause(); // not if the sink has given the body up meanwhile
      });
      req.on("end", () => {
        if (isOver) return;
        isOver = true;
        sink.end();
      });
      req.on("error", onBroken);
      req.on("close", onBroken);
      return {
        resume() {
          if (!isOver) req.resume();
        },
        cancel() {
          isOver = true;
          req.resume(); // the rest is read and dropped, so that the client sees the answer
        },
      };
    },
    cancel: () => void req.resume(),
  };
}

function sendReply(res: ServerResponse, reply: Reply): void {
  const { body } = reply;
  if (res.destroyed || res.closed) {
    discardBody(body, clientGone());
    return;
  }
  try {
    res.writeHead(reply.status, reply.headers as Record<string, string | string[]>);
  } catch (error) {
    discardBody(body, clientGone());
    throw error;
  }
  if (body === null) res.end();
  else if (body instanceof Uint8Array) res.end(body);
  else pump(res, body);
}

// `ServerResponse.cork` is not used: with a deferred `uncork` it loses data at `end`.
function pump(res: ServerResponse, body: ByteSource): void {
  let isOver = false;
  let hasWritten = false;
  let isWaiting = false;
  const onDrain = () => {
    isWaiting = false;
    if (!isOver) control.resume();
  };
  const sink: ByteSink = {
    write(chunk) {
      hasWritten = true;
      const wanted = res.write(chunk);
      if (!wanted && !isWaiting) {
        isWaiting = true;
        res.once("drain", onDrain);
      }
      return wanted;
    },
    end() {
      isOver = true;
      res.end();
    },
    abort() {
      isOver = true;
      res.destroy();
    },
  };
  const control = body.open(sink);
  res.once("close", () => {
    if (isOver) return;
    isOver = true;
    control.cancel(clientGone());
  });
  // A source whose bytes are ready writes them in a microtask before this one, and the head goes with them.
  // Else the head goes alone.
  queueMicrotask(() => {
    if (!hasWritten && !isOver && !res.destroyed) res.flushHeaders();
  });
}

function clientGone(): MeshError {
  return new MeshError("ABORTED", "sending a response: the client is gone");
}

/**
 * Bounds how long an unread answer keeps its memory. An answer in one piece needs no bound, except for
 * strangers: it is small, and the kernel takes it immediately.
 */
function boundReading(
  res: ServerResponse,
  { body }: Reply,
  target: string,
  { strangers, log, stalledMs }: Pick<ServeOptions<CallNotes>, "strangers" | "log" | "stalledMs">,
): void {
  if (strangers !== undefined) {
    dropStalledReader(res, stalledMs ?? STRANGERS_STALLED_MS, () => undefined); // a stranger must not fill the log
  } else if (body !== null && !(body instanceof Uint8Array)) {
    dropStalledReader(res, stalledMs ?? STALLED_MS, () => {
      log.warn({ path: target.split("?", 1)[0] }, "a client does not read its answer; closing its connection");
    });
  }
}

/** Each chunk that the kernel takes is progress, so a slow client keeps its connection. */
export function dropStalledReader(res: ServerResponse, stalledMs: number, onDropped: () => void): void {
  res.setTimeout(stalledMs, () => {
    const { socket } = res;
    if (socket === null) return;
    if (socket.writableLength === 0) {
      socket.setTimeout(stalledMs); // nothing waits for the client: look again
      return;
    }
    onDropped();
    res.destroy();
  });
}

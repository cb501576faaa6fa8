// The listener that the operator talks to: HTTPS, HTTP/1.1 (client-go falls back to it by ALPN), loopback by
// default. Turns each request into a call for the stack and the reply into bytes, and drains at the end.
// Invariant: no timeout of Node's cuts a watch; a call's signal fires as soon as its client is gone.
import { type IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { createPlaces } from "../../base/connection-places.ts";
import { GUARDED_SERVER, guardConnections } from "../../base/guard-connections.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListener, type ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import type { CallNotes, Handler, HttpCall, Reply, Tunnel } from "../http/handler.ts";
import { createClientCount } from "./client-count.ts";
import { createFurtherListeners } from "./further-listeners.ts";
import { createInFlight, type InFlight } from "./in-flight.ts";
import { hasBody, headersOf, type MayUpgrade, requestSource, upgradeOf } from "./incoming.ts";
import { dropStalledReader, STALLED_MS, sendReply } from "./send-reply.ts";
import type { ServerTls } from "./server-tls.ts";

export interface TrafficServerOptions<Notes extends CallNotes> {
  readonly listen: ListenAddress;
  /** Further addresses. */
  readonly alsoListen?: readonly ListenAddress[];
  readonly tls: ServerTls;
  readonly stack: Handler<HttpCall<Notes>, Reply>;
  /** Makes what the layers write their notes about one call of this client into. */
  readonly createRecord: (client: Duplex) => Notes;
  /** Absent: the server ignores every upgrade, as RFC 9110 allows. */
  readonly upgrades?: { readonly may: MayUpgrade; readonly tunnel: Tunnel };
  readonly clock: Clock;
  readonly log: Logger;
  /** How long requests that have an end may take to reach it at shutdown. Default 8,000. */
  readonly drainMs?: number;
  /** Bounds for a listener that every pod of the cluster can reach. Default: none. */
  readonly strangers?: Strangers;
  /** How long a draining server with clients accepts more, at most half of the drain. Default 1,000. */
  readonly openMs?: number;
  /** How long a client may take to send a whole request. Default: no limit. */
  readonly requestMs?: number;
  /** How long a client may read nothing of its answer. Default 60,000, and 10,000 for strangers. */
  readonly stalledMs?: number;
}

/** The bounds of a listener that is open to the pod network. */
export interface Strangers {
  /** At once. */
  readonly maxConnections: number;
  /** False: this address has caused too much work of late to open another connection. */
  readonly mayConnect: (address: string) => boolean;
}

export interface TrafficServer extends Runnable {
  /** True while new connections are accepted. */
  readonly listening: boolean;
  /** The port, once started. */
  readonly port: number;
}

/** Enough for a query that names many namespaces, and for large bearer tokens. */
const MAX_HEADER_BYTES = 128 * 1024;
const HEADERS_TIMEOUT_MS = 30_000;
/** For clients that may be anybody: API servers and peers send a few hundred bytes, 2,000 with a token. */
const STRANGERS_HEAD = { maxHeaderSize: 4 * 1024, headersMs: 10_000 };
const STRANGERS_STALLED_MS = 10_000;
/** Of TLS. */
const HANDSHAKE_MS = 10_000;
/** Longer than client-go keeps an idle connection (90 s), so that it closes first. */
const KEEP_ALIVE_MS = 120_000;
/** Over this time (or half of the drain, if that is less) watches are ended at shutdown. */
const MAX_SPREAD_MS = 1_000;
/** Enough for an operator, which releases its lease now. */
const OPEN_MS = 1_000;
/** A client may have no connection between two requests: each answer closes its connection. */
const QUIET_MS = 100;
/** From the connection of a client to its request. */
const LAST_REQUEST_MS = 100;
/** How often Node looks for requests that take too long. */
const CHECK_MS = 1_000;
/** At most one line a minute about clients that do not trust the proxy. */
const TLS_WARN_MS = 60_000;

/** Makes the server. */
export function createTrafficServer<Notes extends CallNotes>(options: TrafficServerOptions<Notes>): TrafficServer {
  const { tls, clock, log, drainMs = 8_000, openMs = OPEN_MS } = options;
  const inFlight = createInFlight<Notes>(clock);
  const server = createHttpsServer(options);
  const { strangers } = options;
  if (strangers !== undefined)
    guardConnections(server, { ...strangers, places: createPlaces({ max: strangers.maxConnections, clock }), clock });
  const listener = createListener(server, "secureConnection");
  const further = createFurtherListeners(server, options.alsoListen ?? []);
  let unsubscribe = () => {};
  const clients = createClientCount(server, clock);
  let port = 0;
  let listening = false;

  // `rescue` has answered all errors of layers. What is left is a broken reply, of which nothing was sent.
  const guarded = (work: Promise<void>, socket: Duplex) => {
    work.catch((error: unknown) => {
      log.error({ err: error }, "serving a request failed");
      socket.destroy();
    });
  };
  server.on("request", (req, res) => guarded(serve(req, res, false, options, inFlight), req.socket));
  server.on("checkContinue", (req, res) => guarded(serve(req, res, true, options, inFlight), req.socket));
  server.on("upgrade", (req, socket, head) => {
    socket.on("error", () => undefined); // Node removes its own listener; the close event says the same
    guarded(serveUpgrade(req, socket, head, options, inFlight), socket);
  });
  warnOfTlsErrors(server, options);

  return {
    name: "traffic",
    get listening() {
      return listening;
    },
    get port() {
      return port;
    },
    async start() {
      unsubscribe = tls.follow(server);
      ({ port } = await listener.listen(options.listen));
      await further.listen();
      listening = true;
    },
    async stop() {
      listening = false;
      unsubscribe();
      const endMs = clock.monotonicMs() + drainMs;
      const halfMs = drainMs / 2;
      const untilAnswered = () => inFlight.untilNoneWithEnd(Math.max(0, endMs - clock.monotonicMs()));
      inFlight.beginDrain();
      // The listener stays open all this time: an operator that ends together with the proxy releases its
      // lease only now.
      await Promise.all([
        inFlight.endLongRunning(Math.min(MAX_SPREAD_MS, halfMs)),
        clients.untilNone(Math.min(openMs, halfMs), QUIET_MS),
      ]);
      await untilAnswered();
      listener.stopAccepting();
      further.stopAccepting();
      // A client that has just connected, or is in the handshake, is about to send its request.
      const lastMs = Math.min(LAST_REQUEST_MS, halfMs);
      await clients.untilNone(lastMs, lastMs);
      await untilAnswered();
      await inFlight.endLongRunning(0); // those that began meanwhile
      inFlight.abortAll();
      await Promise.all([listener.close(), further.close()]);
    },
  };
}

function createHttpsServer({
  tls,
  upgrades,
  strangers,
  requestMs = Number.POSITIVE_INFINITY,
}: Pick<TrafficServerOptions<CallNotes>, "tls" | "upgrades" | "strangers" | "requestMs">): Server {
  const { maxHeaderSize, headersMs } =
    strangers === undefined ? { maxHeaderSize: MAX_HEADER_BYTES, headersMs: HEADERS_TIMEOUT_MS } : STRANGERS_HEAD;
  return createServer({
    ...(strangers !== undefined && GUARDED_SERVER),
    ...tls.options,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    maxHeaderSize,
    handshakeTimeout: HANDSHAKE_MS,
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: Number.isFinite(requestMs) ? requestMs : 0,
    connectionsCheckingInterval: CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    shouldUpgradeCallback: (req: IncomingMessage) => upgradeOf(req, upgrades?.may) !== undefined,
  });
}

async function serve<Notes extends CallNotes>(
  req: IncomingMessage,
  res: ServerResponse,
  expectsContinue: boolean,
  options: TrafficServerOptions<Notes>,
  inFlight: InFlight<Notes>,
): Promise<void> {
  const { stack, createRecord } = options;
  if (req.socket.destroyed) return; // see guardConnections
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
  boundReading(res, reply, running.call.target, options);
  sendReply(res, reply);
}

/** Bounds an unread answer, which keeps its memory and place. The kernel takes a small one immediately. */
function boundReading(
  res: ServerResponse,
  { body }: Reply,
  target: string,
  { strangers, log, stalledMs }: Pick<TrafficServerOptions<CallNotes>, "strangers" | "log" | "stalledMs">,
): void {
  const isStream = body !== null && !(body instanceof Uint8Array);
  if (strangers !== undefined) {
    dropStalledReader(res, stalledMs ?? STRANGERS_STALLED_MS, () => undefined); // a stranger must not fill the log
  } else if (isStream) {
    dropStalledReader(res, stalledMs ?? STALLED_MS, () => {
      log.warn({ path: target.split("?", 1)[0] }, "a client does not read its answer; closing its connection");
    });
  }
}

async function serveUpgrade<Notes extends CallNotes>(
  req: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  { stack, createRecord, upgrades }: TrafficServerOptions<Notes>,
  inFlight: InFlight<Notes>,
): Promise<void> {
  const { method = "GET", url: target = "" } = req;
  const upgrade = upgradeOf(req, upgrades?.may) ?? "";
  const record = createRecord(socket);
  const running = inFlight.begin({ method, target, headers: headersOf(req), body: null, upgrade, record });
  socket.once("close", () => running.end(true));
  const reply = await stack(running.call);
  if (reply.tunnel !== undefined) await upgrades?.tunnel(reply.tunnel, req, socket, head);
  else refuseUpgrade(req, socket as Socket, reply);
}

function refuseUpgrade(req: IncomingMessage, socket: Socket, reply: Reply): void {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.once("finish", () => socket.destroySoon());
  sendReply(res, reply);
}

// An operator that does not trust the proxy's CA logs nothing useful. This line is the only trace.
function warnOfTlsErrors(
  server: Server,
  { tls, clock, log }: Pick<TrafficServerOptions<CallNotes>, "tls" | "clock" | "log">,
): void {
  let warnedMs = Number.NEGATIVE_INFINITY;
  server.on("tlsClientError", (error) => {
    if (clock.monotonicMs() - warnedMs < TLS_WARN_MS) return;
    warnedMs = clock.monotonicMs();
    log.warn({ err: error }, `a client broke off the TLS handshake: ${tls.question}`);
  });
}

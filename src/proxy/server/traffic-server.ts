// The listener that the operator talks to: HTTPS, HTTP/1.1 (client-go falls back to it by ALPN), loopback by
// default. Invariants: no timeout of Node's cuts a watch; the drain waits for all requests that have an end.
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import { createServer as createNetServer } from "node:net";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { createPlaces } from "../../base/connection-places.ts";
import { GUARDED_SERVER, guardConnections } from "../../base/guard-connections.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListener, type ListenAddress } from "../../base/listener.ts";
import type { CallNotes } from "../http/handler.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { createClientCount, createInFlight } from "./in-flight.ts";
import { type ServeOptions, serve, serveUpgrade, upgradeOf } from "./serve.ts";

export interface TrafficServerOptions<Notes extends CallNotes> extends ServeOptions<Notes> {
  readonly listen: ListenAddress;
  /** Further addresses: 127.0.0.1:443 for clients with a built-in name, [::1]:5443 for ip6tables. */
  readonly alsoListen?: readonly ListenAddress[];
  readonly tls: ServerTls;
  readonly clock: Clock;
  /** How long requests that have an end may take to reach it at shutdown. Default 8,000. */
  readonly drainMs?: number;
  /** How long a draining server with clients accepts more, at most half of the drain. Default 1,000. */
  readonly openMs?: number;
  /** How long a client may take to send a whole request. Default: no limit. */
  readonly requestMs?: number;
}

export interface TrafficServer extends Runnable {
  readonly listening: boolean;
  /** 0 before the start. */
  readonly port: number;
}

/** Enough for a query that names many namespaces, and for large bearer tokens. */
const MAX_HEADER_BYTES = 128 * 1024;
const HEADERS_TIMEOUT_MS = 30_000;
/** For strangers. API servers and peers send a few hundred bytes, 2,000 with a token. */
const STRANGERS_HEAD = { maxHeaderSize: 4 * 1024, headersMs: 10_000 };
const TLS_HANDSHAKE_MS = 10_000;
/** Longer than client-go keeps an idle connection (90 s), so that it closes first. */
const KEEP_ALIVE_MS = 120_000;
/** At shutdown, watches end over this time, or over half of the drain if that is less. */
const MAX_SPREAD_MS = 1_000;
/** Enough for an operator that ends together with the proxy to release its lease. */
const OPEN_MS = 1_000;
/** During a drain each answer closes its connection, so a client may have none between two requests. */
const QUIET_MS = 100;
/** How long a new client may take from its connection to its request. */
const LAST_REQUEST_MS = 100;
/** How often Node looks for requests that take too long. */
const CHECK_MS = 1_000;
/** At most one line a minute about clients that do not trust the proxy. */
const TLS_WARN_MS = 60_000;

export function createTrafficServer<Notes extends CallNotes>(options: TrafficServerOptions<Notes>): TrafficServer {
  const { tls, clock, log, drainMs = 8_000, openMs = OPEN_MS } = options;
  const inFlight = createInFlight<Notes>(clock);
  const server = createHttpsServer(options);
  const { strangers } = options;
  if (strangers !== undefined)
    guardConnections(server, { ...strangers, places: createPlaces({ max: strangers.maxConnections, clock }), clock });
  const listeners = [{ address: options.listen, listener: createListener(server, "secureConnection") }];
  for (const address of options.alsoListen ?? []) {
    const further = createNetServer({ noDelay: true }, (socket) => server.emit("connection", socket));
    listeners.push({ address, listener: createListener(further, "connection") });
  }
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
      for (const { address, listener } of listeners) {
        const bound = await listener.listen(address);
        if (address === options.listen) ({ port } = bound);
      }
      listening = true;
    },
    async stop() {
      listening = false;
      unsubscribe();
      const endMs = clock.monotonicMs() + drainMs;
      const halfMs = drainMs / 2;
      const untilAnswered = () => inFlight.untilOnlyEndless(Math.max(0, endMs - clock.monotonicMs()));
      inFlight.beginDrain();
      // The listener stays open: an operator that ends together with the proxy releases its lease only now.
      await Promise.all([
        inFlight.endLongRunning(Math.min(MAX_SPREAD_MS, halfMs)),
        clients.untilNone(Math.min(openMs, halfMs), QUIET_MS),
      ]);
      await untilAnswered();
      for (const { listener } of listeners) listener.stopAccepting();
      // A client that has just connected, or is in the handshake, is about to send its request.
      const lastMs = Math.min(LAST_REQUEST_MS, halfMs);
      await clients.untilNone(lastMs, lastMs);
      await untilAnswered();
      await inFlight.endLongRunning(0); // those that began meanwhile
      inFlight.abortAll();
      await Promise.all(listeners.map(({ listener }) => listener.close()));
    },
  };
}

function createHttpsServer({
  tls,
  mayUpgrade,
  strangers,
  requestMs = Number.POSITIVE_INFINITY,
}: Pick<TrafficServerOptions<CallNotes>, "tls" | "mayUpgrade" | "strangers" | "requestMs">): Server {
  const { maxHeaderSize, headersMs } =
    strangers === undefined ? { maxHeaderSize: MAX_HEADER_BYTES, headersMs: HEADERS_TIMEOUT_MS } : STRANGERS_HEAD;
  return createServer({
    ...(strangers !== undefined && GUARDED_SERVER),
    ...tls.options,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    maxHeaderSize,
    handshakeTimeout: TLS_HANDSHAKE_MS,
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: Number.isFinite(requestMs) ? requestMs : 0,
    connectionsCheckingInterval: CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    shouldUpgradeCallback: (req: IncomingMessage) => upgradeOf(req, mayUpgrade) !== undefined,
  });
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

export interface ServerTls {
  readonly options?: Pick<TlsOptions, "SNICallback" | "requestCert" | "rejectUnauthorized">;
  /** What the reader of the log should ask when a client breaks off the handshake. */
  readonly question: string;
  /** Sets the default certificate, now and after each change. Returns the unsubscription. */
  follow(server: Pick<Server, "setSecureContext">): () => void;
}

export function singleCertificate(certificate: Pick<ServingCertificate, "current" | "onChange">): ServerTls {
  return {
    question: "does it trust the CA of this proxy?",
    follow(server) {
      const use = (pair: ReturnType<ServingCertificate["current"]>) =>
        server.setSecureContext({ ...pair, minVersion: "TLSv1.2" });
      use(certificate.current());
      return certificate.onChange(use);
    },
  };
}

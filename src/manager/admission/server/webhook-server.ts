// The HTTPS listener of the webhooks, in every replica of the manager. Invariants: a new certificate cuts no
// connection; the bounds in this file limit the memory, connections and time of each client. A stopping
// server still answers for a while, because the API server learns of the stop only then.
import { constants } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { KeyCertificate } from "../../../base/certificates.ts";
import { createClientPace } from "../../../base/client-pace.ts";
import { sleep } from "../../../base/clock.ts";
import { createPlaces } from "../../../base/connection-places.ts";
import { createFairBudget } from "../../../base/fair-budget.ts";
import { createFairTurns } from "../../../base/fair-turns.ts";
import { GUARDED_SERVER, guardConnections } from "../../../base/guard-connections.ts";
import type { Runnable } from "../../../base/lifecycle.ts";
import { createListener, type ListenAddress } from "../../../base/listener.ts";
import type { Registry } from "../../../base/metrics.ts";
import type { ProcessContext } from "../../../base/process-context.ts";
import type { ClientCa } from "./client-ca.ts";
import { createWebhookMetrics, type ServeOptions, serveReview } from "./serve-review.ts";
import type { WebhookRoutes } from "./webhook.ts";

/** Bounds in milliseconds, bytes and connections. Tests use smaller ones. */
const BOUNDS = {
  /** How long a stopping server accepts connections. */
  openMs: 3_000,
  /** The time for the handshake, and then for the first headers. */
  firstMs: 10_000,
  /** The time for later headers, for a whole request, and to read an answer. */
  requestMs: 10_000,
  /** Bytes of bodies and of what they become. One client gets half, in which each allowed review fits. */
  maxBodyBytes: 96 * 1024 * 1024,
  /** An API server opens at most one for each review under way. Every pod can connect. */
  maxConnections: 256,
};

export interface WebhookServerOptions extends Partial<typeof BOUNDS>, Pick<ProcessContext, "clock" | "log"> {
  readonly listen: ListenAddress;
  /** `serving` is undefined before the first certificate: handshakes then fail. */
  readonly identity: { readonly serving: KeyCertificate | undefined; onChange(listener: () => void): () => void };
  readonly routes: WebhookRoutes;
  readonly metricsRegistry: Registry;
  /** Only clients with a certificate of these CAs are served. Default: all clients are. */
  readonly clientCa?: ClientCa;
}

export interface WebhookServer extends Runnable {
  readonly port: number;
}

/** An API server sends some hundred bytes, or two thousand with a token. */
const MAX_HEADER_BYTES = 4 * 1024;
/** Longer than client-go keeps an idle connection (90 s), so that client-go closes it first. */
const KEEP_ALIVE_MS = 120_000;
/** How long running requests may continue when no new ones are accepted. A review waits less long. */
const LAST_ANSWERS_MS = 3_000;
const CHECK_MS = 1_000;
/** One address may use so much time before it counts as heavy: some hundred ordinary reviews. */
const LIGHT_MS = 500;
/** The handshakes of one address. An API server opens at most one connection for each review under way. */
const HANDSHAKES_PER_SECOND = 32;
const HANDSHAKES_AT_ONCE = 256;
/** The log lines of each address. Each has up to 3,000 characters. */
const LOGGED_REFUSALS = { perSecond: 5, burst: 100 };
const HANDSHAKE_FAILED =
  "a client of the webhooks broke off the TLS handshake, or had too many connections: does the caBundle contain the mesh's CA?";
/** The least time between two lines about failed handshakes. */
const TLS_WARN_MS = 60_000;

export function createWebhookServer(options: WebhookServerOptions): WebhookServer {
  const { identity, clientCa, clock } = options;
  const bounds = { ...BOUNDS, ...options };
  const server = createTlsServer(bounds);
  const listener = createListener(server, "secureConnection");
  const budget = createFairBudget(bounds.maxBodyBytes);
  const turns = createFairTurns({ clock, lightMs: LIGHT_MS });
  const refusals = createClientPace({ ...LOGGED_REFUSALS, clock });
  const running = new Set<Promise<void>>();
  let isDraining = false;
  let port = 0;

  let unsubscribe: () => void = () => undefined;
  const useCertificate = createCertificateUse(server, options);

  const answerMs = bounds.requestMs;
  const metrics = createWebhookMetrics(options.metricsRegistry);
  const common = { ...options, metrics, budget, turns, refusals, answerMs, isDraining: () => isDraining };
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    if (req.socket.destroyed) return; // see guardConnections
    const work = serveReview(req, res, common);
    running.add(work);
    void work.finally(() => running.delete(work));
  };
  server.on("request", serve);
  server.on("checkContinue", (req, res) => {
    if (!req.socket.destroyed) res.writeContinue();
    serve(req, res);
  });
  countHandshakeFailures(server, common);

  return {
    name: "webhooks",
    get port() {
      return port;
    },
    async start() {
      await clientCa?.start(useCertificate);
      unsubscribe = identity.onChange(useCertificate);
      useCertificate();
      ({ port } = await listener.listen(options.listen));
    },
    async stop() {
      if (server.listening) {
        isDraining = true;
        await sleep(clock, bounds.openMs);
      }
      listener.stopAccepting();
      await Promise.race([Promise.all(running), sleep(clock, LAST_ANSWERS_MS)]);
      await listener.close();
      unsubscribe();
      clientCa?.stop();
    },
  };
}

/** Calls without a change do nothing. */
function createCertificateUse(server: Server, { identity, clientCa }: WebhookServerOptions): () => void {
  let leaf: KeyCertificate | undefined;
  let caPem: string | undefined;
  return () => {
    const { serving } = identity;
    if (serving === undefined || (serving === leaf && caPem === clientCa?.pem)) return;
    leaf = serving;
    caPem = clientCa?.pem;
    server.setSecureContext({
      cert: serving.certPem,
      key: serving.keyPem,
      minVersion: "TLSv1.2",
      // A resumed session would not be verified against the present CAs.
      ...(caPem !== undefined && { ca: caPem, secureOptions: constants.SSL_OP_NO_TICKET }),
    });
  };
}

function createTlsServer(bounds: WebhookServerOptions & typeof BOUNDS): Server {
  const { requestMs, firstMs, maxConnections, clientCa, clock } = bounds;
  const server = createServer({
    ...GUARDED_SERVER,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    requestCert: clientCa !== undefined,
    rejectUnauthorized: clientCa !== undefined,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
    noDelay: true,
  });
  const places = createPlaces({ max: maxConnections, clock });
  const handshakes = createClientPace({ perSecond: HANDSHAKES_PER_SECOND, burst: HANDSHAKES_AT_ONCE, clock });
  const mayConnect = (address: string) => handshakes.allow(address, 1);
  guardConnections(server, { places, clock, mayConnect, firstMs });
  return server;
}

// The API server reports a failed handshake to the creator of the pod. This is the manager's side.
function countHandshakeFailures(server: Server, { clock, log, metrics }: Pick<ServeOptions, "clock" | "log" | "metrics">) {
  let warnedMs = Number.NEGATIVE_INFINITY;
  server.on("tlsClientError", (error) => {
    metrics.handshakeFailed();
    if (clock.monotonicMs() - warnedMs < TLS_WARN_MS) return;
    warnedMs = clock.monotonicMs();
    log.warn({ err: error }, HANDSHAKE_FAILED);
  });
}

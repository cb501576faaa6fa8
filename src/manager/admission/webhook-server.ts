// The HTTPS listener of the admission webhooks; every replica of the manager has one. Invariants: a new certificate applies to
// the next connection and cuts none. The bounds in this file limit the memory, connections and time of each client. A stopping
// server still answers for a while, because the API server learns of the stop only then. Created by app.ts.
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { KeyCertificate } from "../../base/certificates.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListener, type ListenAddress } from "../../base/listener.ts";
import type { Logger } from "../../base/log.ts";
import { createByteBudget, serveReview } from "./serve-review.ts";
import type { WebhookRoutes } from "./webhook.ts";
import type { WebhookMetrics } from "./webhook-metrics.ts";

/** Where the certificate comes from. */
export interface ServingIdentity {
  /** Undefined before the first certificate: handshakes then fail. */
  readonly serving: KeyCertificate | undefined;
  onChange(listener: () => void): () => void;
}

export interface WebhookServerOptions {
  readonly listen: ListenAddress;
  readonly identity: ServingIdentity;
  readonly routes: WebhookRoutes;
  readonly metrics: WebhookMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long the server accepts new connections after the stop, in milliseconds; default 3,000. */
  readonly openMs?: number;
  /** How long a client may take for its headers, and for the whole request; default 10,000. */
  readonly requestMs?: number;
  /** Bytes of bodies in memory at a time; default 64 MiB. */
  readonly maxHeldBytes?: number;
  /** Default 512. */
  readonly maxConnections?: number;
  /** From one address; default 128. An API server needs a few, and several may come from one address. */
  readonly maxConnectionsPerAddress?: number;
}

export interface WebhookServer extends Runnable {
  /** The port, once started. */
  readonly port: number;
}

const MAX_HEADER_BYTES = 16 * 1024;
/** Longer than client-go keeps an idle connection (90 s), so that client-go closes it first. */
const KEEP_ALIVE_MS = 120_000;
/** How long running requests may continue after the server accepts no more connections: slightly longer than a review waits. */
const LAST_ANSWERS_MS = 3_000;
/** How often Node checks the timeouts of connections. */
const CHECK_MS = 1_000;
/** At most one log line a minute about clients that do not trust the certificate. */
const TLS_WARN_MS = 60_000;

export function createWebhookServer(options: WebhookServerOptions): WebhookServer {
  const { identity, clock, log, metrics, openMs = 3_000, maxHeldBytes = 64 * 1024 * 1024 } = options;
  const server = createTlsServer(options);
  const listener = createListener(server, "secureConnection");
  const budget = createByteBudget(maxHeldBytes);
  const running = new Set<Promise<void>>();
  let draining = false;
  let port = 0;

  let unsubscribe: () => void = () => undefined;
  let leaf: KeyCertificate | undefined;
  const useCertificate = () => {
    const { serving } = identity;
    if (serving === undefined || serving === leaf) return;
    leaf = serving;
    server.setSecureContext({ cert: serving.certPem, key: serving.keyPem, minVersion: "TLSv1.2" });
  };

  server.on("request", (req, res) => {
    const work = serveReview(req, res, { ...options, budget, isDraining: () => draining });
    running.add(work);
    void work.finally(() => running.delete(work));
  });
  countHandshakeFailures(server, { clock, log, metrics });

  return {
    name: "webhooks",
    get port() {
      return port;
    },
    async start() {
      unsubscribe = identity.onChange(useCertificate);
      useCertificate();
      ({ port } = await listener.listen(options.listen));
    },
    async stop() {
      if (server.listening) {
        draining = true;
        await sleep(clock, openMs);
      }
      listener.stopAccepting();
      await Promise.race([Promise.all(running), sleep(clock, LAST_ANSWERS_MS)]);
      await listener.close();
      unsubscribe();
    },
  };
}

function createTlsServer({
  requestMs = 10_000,
  maxConnections = 512,
  maxConnectionsPerAddress = 128,
}: WebhookServerOptions): Server {
  const server = createServer({
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    handshakeTimeout: requestMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: requestMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
    noDelay: true,
  });
  server.maxConnections = maxConnections;
  // Idle connections must not keep the API server out. A client whose idle connection is closed opens a new one.
  server.on("drop", () => server.closeIdleConnections());
  limitPerAddress(server, maxConnectionsPerAddress);
  return server;
}

/** Keeps one pod from using all connections. */
function limitPerAddress(server: Server, max: number): void {
  const connections = new Map<string, number>();
  // Before the TLS handshake, and before Node's own listener.
  server.prependListener("connection", (socket: Socket) => {
    const { remoteAddress: address = "" } = socket;
    const count = (connections.get(address) ?? 0) + 1;
    connections.set(address, count);
    socket.once("close", () => {
      const left = (connections.get(address) ?? 0) - 1;
      if (left <= 0) connections.delete(address);
      else connections.set(address, left);
    });
    if (count > max) socket.destroy();
  });
}

// The API server reports a failed handshake in its own log and to the creator of the pod. This is the manager's side.
function countHandshakeFailures(
  server: Server,
  { clock, log, metrics }: Pick<WebhookServerOptions, "clock" | "log" | "metrics">,
) {
  let warnedMs = Number.NEGATIVE_INFINITY;
  server.on("tlsClientError", (error) => {
    metrics.handshakeFailed();
    if (clock.monotonicMs() - warnedMs < TLS_WARN_MS) return;
    warnedMs = clock.monotonicMs();
    log.warn(
      { err: error },
      "a client of the webhooks broke off the TLS handshake, or had too many connections: does the caBundle contain the mesh's CA?",
    );
  });
}
